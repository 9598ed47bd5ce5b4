{#
    The facts of a table of branches, in order, as periods in which the base of a branch is
    constant.

        log        … 10        14           20          25
        facts      fork b      rebase b                 drop b
                   at 10       at 14
        epochs     (10, 14]    (14, 25]                          a write on b at 20 inherits main as
                                                                 of 14

    An epoch is {'epoch', 'first', 'branch', 'fork', 'since', 'until', 'parent', 'at', 'chain'}:
    `first` is the number of the epoch that its fork began, because a branch that is dropped can be
    forked again at the same end of the log; `fork` is the last transaction before the fork; `chain`
    lists where to look for states that the branch does not have itself, nearest first:
    [{'branch', 'at', 'fork'}], ending in main.
#}
{% macro _branch_epochs(facts) %}
    {% set epochs = [] %}
    {% set alive = {} %}
    {% for fact in facts %}
        {% set before = alive.pop(fact.branch, none) %}
        {% if before is not none %}
            {% do before.update({'until': fact.since}) %}
        {% endif %}
        {% if fact.kind != 'drop' and (fact.kind == 'fork' or before is not none) %}
            {% set epoch = {
                'epoch': epochs | length, 'branch': fact.branch,
                'first': epochs | length if fact.kind == 'fork' else before.first,
                'fork': fact.since if fact.kind == 'fork' else before.fork,
                'since': fact.since, 'until': none, 'parent': fact.parent, 'at': fact.at,
            } %}
            {% set chain = [{'branch': fact.parent, 'at': fact.at, 'fork': -1}] %}
            {% set above = dbt_history._epoch_of(epochs, alive.get(fact.parent), fact.at) %}
            {% if above is not none %}
                {% do chain[0].update({'fork': above.fork}) %}
                {% for link in above.chain %}
                    {% do chain.append(dict(link, at=[link.at, fact.at] | min)) %}
                {% endfor %}
            {% endif %}
            {% do epoch.update({'chain': chain}) %}
            {% do epochs.append(epoch) %}
            {% do alive.update({fact.branch: epoch}) %}
        {% endif %}
    {% endfor %}
    {% do return(epochs) %}
{% endmacro %}


{#
    The epoch of a branch, of the same fork as `newest`, that applied at a point; before the fork,
    the first one.
#}
{% macro _epoch_of(epochs, newest, at) %}
    {% if newest is none or newest is undefined %}
        {% do return(none) %}
    {% endif %}
    {% set own = [] %}
    {% for epoch in epochs if epoch.first == newest.first and epoch.epoch <= newest.epoch %}
        {% if not own or at is none or epoch.since <= at %}{% do own.append(epoch) %}{% endif %}
    {% endfor %}
    {% do return(own | last) %}
{% endmacro %}


{# The epoch of a branch that exists now; none of one that was dropped, or of main. #}
{% macro _present_epoch(epochs, branch) %}
    {% set own = [] %}
    {% for epoch in epochs if epoch.branch == branch and epoch.until is none %}
        {% do own.append(epoch) %}
    {% endfor %}
    {% do return(own | last if own else none) %}
{% endmacro %}


{#
    The facts in order; none if no branch was ever created. `is_sought`: the table may be younger
    than dbt's cache, because there are writes on branches.
#}
{% macro _branch_facts(branches, is_sought=false) %}
    {% set relation = dbt_history._branches_relation(branches) %}
    {% set named = dbt_history._relation_of(branches) %}
    {% if relation is none and is_sought and adapter.check_schema_exists(none, named.schema) %}
        {% set relation = dbt_history._made_meanwhile(named) %}
    {% endif %}
    {% set facts = [] %}
    {% if execute and relation is not none %}
        {% for row in run_query(
            'select `fact`, `kind`, `branch`, `parent`, `at`, `since` from '
                ~ dbt_history._quoted_relation(relation) ~ ' order by `fact`'
        ).rows %}
            {% do facts.append({
                'fact': row[0] | int, 'kind': row[1], 'branch': row[2], 'parent': row[3],
                'at': row[4] | int if row[4] is not none else none, 'since': row[5] | int,
            }) %}
        {% endfor %}
    {% endif %}
    {% do return(facts) %}
{% endmacro %}


{# The table of branches, given as a relation or a name; none if it does not exist yet. #}
{% macro _branches_relation(branches) %}
    {% do return(load_relation(dbt_history._relation_of(branches))) %}
{% endmacro %}


{#
    The writes with what their branch inherits from:

        fork      the number of the branch's fork; -1 for main
        lineage   the branch itself and its ancestors, nearest first, each with the part of its
                  states that the write can see: those in (fork, at]
#}
{% macro _branch_ctes(pending) %}
{%- set branch = dbt_history._prefixed('branch') -%}
on_branches as (
    select
        identified.* except (problem),
        {{ branch }} as branch,
        coalesce(
            identified.problem,
            if({{ branch }} <> 'main' and epochs.epoch is null, 'ERROR:branch', null)
        ) as problem,
        epochs.epoch,
        coalesce(epochs.fork, -1L) as fork,
        coalesce(
            epochs.lineage,
            array(named_struct(
                'branch', {{ branch }}, 'at', {{ dbt_history._end_of_log() }}, 'fork', -1L
            ))
        ) as lineage
    from identified
    left join {{ dbt_history._epochs_table(pending.epochs) | indent(4) }}
        on identified.{{ branch }} = epochs.branch
        and identified.txn > epochs.since
        and identified.txn <= epochs.until
),
{%- endmacro %}


{# No transaction has a greater number. #}
{% macro _end_of_log() %}
    {%- do return('9223372036854775807L') -%}
{% endmacro %}


{% macro _epochs_table(epochs) %}
    {%- set lines = [] -%}
    {%- for epoch in epochs -%}
        {%- do lines.append(
            '(' ~ dbt_history._string_literal(epoch.branch) ~ ', ' ~ epoch.since ~ 'L, '
                ~ (epoch.until ~ 'L' if epoch.until is not none else dbt_history._end_of_log())
                ~ ', ' ~ epoch.epoch ~ ', ' ~ epoch.fork ~ 'L, ' ~ dbt_history._lineage(epoch) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- set columns = 'branch, since, until, epoch, fork, lineage' -%}
    {%- if not lines -%}
        {%- do return(
            "(select '' as branch, 0L as since, 0L as until, 0 as epoch, 0L as fork,"
                ~ " array(named_struct('branch', '', 'at', 0L, 'fork', 0L)) as lineage where false)"
                ~ " as epochs"
        ) -%}
    {%- endif -%}
    {%- do return(
        '(\n    select * from values\n        ' ~ lines | join(',\n        ')
            ~ '\n        as epochs(' ~ columns ~ ')\n) as epochs'
    ) -%}
{% endmacro %}


{% macro _lineage(epoch) %}
    {%- set lines = [] -%}
    {%- for link in [{'branch': epoch.branch, 'at': none, 'fork': epoch.fork}] + epoch.chain -%}
        {%- do lines.append(
            "named_struct('branch', " ~ dbt_history._string_literal(link.branch) ~ ", 'at', "
                ~ (link.at ~ 'L' if link.at is not none else dbt_history._end_of_log())
                ~ ", 'fork', " ~ link.fork ~ 'L)'
        ) -%}
    {%- endfor -%}
    {%- do return('array(' ~ lines | join(', ') ~ ')') -%}
{% endmacro %}


{#
    What the writes inherit from stored states: one row per item (the key without the branch) and
    epoch, with the state and the branch of the lineage that it is on. The nearest branch with any
    state up to its point applies, also if that is a tombstone.
#}
{% macro _inherited_ctes(features, pending) %}
{%- set item = dbt_history._c_item(features) -%}
{%- set names = item | join(', ') -%}
links as (
    select
        {{ names }},
        epoch,
        place,
        link.branch as ancestor,
        link.fork,
        link.at
    from (select distinct {{ names }}, epoch, lineage from on_branches) as written
    lateral view posexplode(written.lineage) lines as place, link
    where place > 0
),

inherited as (
    select
        {{ names }},
        epoch,
        min_by(
            named_struct('branch', ancestor, 'fork', fork, 'state', state), struct(place, -state.i)
        ) as inherited
    from (
        select
            links.*,
            {{ dbt_history._stored_state(features, pending) | indent(12) }} as state
        from links
        inner join {{ dbt_history._quoted_relation(pending.states) }} as stored
            on stored.`branch` = links.ancestor
            and {{ dbt_history._same_feature(features, 'links', dbt_history._item(features)) }}
        where stored.`txn` > links.fork
            and stored.`txn` <= links.at
            and (
                stored.`txn_next` is null
                or stored.`txn_next` > links.at
                or (
                    stored.`txn_next` = stored.`txn`
                    and stored.{{ dbt_history._quote(features.namespace) }}.`action` = 'DELETE'
                )
            )
            -- With numbers that Spark knows beforehand, so that it skips files.
            and stored.`txn` <= {{ dbt_history._point_of_lineage(pending, 'max') }}L
            and (
                stored.`txn_next` is null
                or stored.`txn_next` > {{ dbt_history._point_of_lineage(pending, 'min') }}L
                or stored.`txn_next` = stored.`txn`
            )
    ) as known
    group by {{ names }}, epoch
),
{%- endmacro %}


{# The earliest or latest point at which branches look up what they inherit; at most `after`. #}
{% macro _point_of_lineage(pending, which) %}
    {%- set points = [] -%}
    {%- for epoch in pending.epochs -%}
        {%- for link in epoch.chain -%}
            {%- do points.append([link.at, pending.after] | min) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(((points | max) if which == 'max' else (points | min)) if points else 0) -%}
{% endmacro %}


{#
    What a write inherits from the ancestors of its branch, if it has no state of its own: of the
    nearest ancestor with any state up to its point, the last one that the fold made, or else the
    stored one. NULL if that is a tombstone.
#}
{% macro _inherited_state(features, pending) -%}
aggregate(
    slice(w.lineage, 2, size(w.lineage)),
    cast(null as {{ features.state_type }}),
    (found, link) -> coalesce(
        found,
        try_element_at(
            filter(
                acc.new_states,
                state -> state.branch = link.branch and state.txn > link.fork
                    and state.txn <= link.at
            ),
            -1
        )
        {%- if pending.states is not none %},
        if(
            w.inherited.branch = link.branch and w.inherited.fork = link.fork,
            w.inherited.state,
            null
        )
        {%- endif %}
    ),
    found -> if(found.action <> 'DELETE', found, null)
)
{%- endmacro %}


{# Those of an array of states, or of outcomes, that are on the branch of `write`. #}
{% macro _of_branch(write, states) %}
    {%- do return(
        'filter(' ~ states ~ ', own -> own.branch = ' ~ write ~ '.branch and own.fork = ' ~ write
            ~ '.fork)'
    ) -%}
{% endmacro %}


{# The key without the branch: an item is one feature on all branches. #}
{% macro _item(features) %}
    {%- set item = [] -%}
    {%- for name in features.key if name | lower != 'branch' -%}
        {%- do item.append(name) -%}
    {%- endfor -%}
    {%- do return(item) -%}
{% endmacro %}


{% macro _c_item(features) %}
    {%- do return(dbt_history._all_prefixed(dbt_history._item(features))) -%}
{% endmacro %}


{% macro _same_item(features, left, right) %}
    {%- set terms = [] -%}
    {%- for name in dbt_history._c_item(features) -%}
        {%- do terms.append(left ~ '.' ~ name ~ ' = ' ~ right ~ '.' ~ name) -%}
    {%- endfor -%}
    {%- do return(terms | join(' and ')) -%}
{% endmacro %}


{#
    Whether a state of the written item is on the write's own branch or one of its ancestors, and
    not on a dropped branch of the same name.
#}
{% macro _is_of_line(write, branch, txn) %}
    {%- do return(
        'exists(' ~ write ~ '.lineage, line -> line.branch = ' ~ branch ~ ' and line.fork < ' ~ txn
            ~ ')'
    ) -%}
{% endmacro %}
