{#
    The facts of a table of branches, in order, as periods in which the base of a branch is
    constant.

        log        … 10        14           20          25
        facts      fork b      rebase b                 drop b
                   at 10       at 14
        epochs     (10, 14]    (14, 25]                          a write on b at 20 inherits main as
                                                                 of 14

    An epoch is {'epoch', 'branch', 'fork', 'since', 'until', 'parent', 'at', 'level', 'chain'}:
    `fork` is the fork that it began with, `chain` lists where to look for states that the branch
    does not have itself, nearest first: [{'branch', 'at', 'fork'}], ending in main.
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
            {% do epoch.update({'chain': chain, 'level': chain | length}) %}
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
    {% for epoch in epochs
        if epoch.branch == newest.branch and epoch.fork == newest.fork
            and epoch.epoch <= newest.epoch %}
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


{# The facts in order; none if no branch was ever created. #}
{% macro _branch_facts(branches) %}
    {% set relation = dbt_history._branches_relation(branches) %}
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
    The epochs, and the levels that the pending writes may have: a level without writes needs no
    fold. A write that belongs to no epoch has level 0; there is none on a branch that exists now
    and had the same base at `after` already.

        after           14 |
        b    (10, ----------------        level 1
        c    (10, 12]                     level 0: dropped, a write on it is an error
        d    (10, ------------](20, --    levels 0 and 1: rebased since, which may be a new fork
#}
{% macro _pending_branches(features, names, after) %}
    {% set epochs = dbt_history._branch_epochs(dbt_history._branch_facts(features.branches)) %}
    {% set levels = [] %}
    {% for name in names %}
        {% set present = dbt_history._present_epoch(epochs, name) %}
        {% do levels.append(0) if present is none or present.since > after %}
        {% for epoch in epochs
            if epoch.branch == name and (epoch.until is none or epoch.until > after) %}
            {% do levels.append(epoch.level) %}
        {% endfor %}
    {% endfor %}
    {% do return({'epochs': epochs, 'levels': levels | unique | sort | list or [0]}) %}
{% endmacro %}


{#
    The writes with the epoch of their branch, and one relation per level:

        level 0    main
        level 1    branches of main
        level 2    branches of those
#}
{% macro _branch_ctes(features, pending) %}
{%- set branch = dbt_history._prefixed('branch') -%}
on_branches as (
    select
        identified.* except (problem),
        coalesce(
            identified.problem,
            if({{ branch }} <> 'main' and epochs.epoch is null, 'ERROR:branch', null)
        ) as problem,
        coalesce(epochs.level, 0) as level,
        coalesce(epochs.fork, -1L) as fork,
        epochs.epoch,
        epochs.lineage
    from identified
    left join {{ dbt_history._epochs_table(pending.epochs) | indent(4) }}
        on identified.{{ branch }} = epochs.branch
        and identified.txn > epochs.since
        and identified.txn <= epochs.until
),
{%- for level in pending.levels %}

writes_{{ level }} as (
    select * from on_branches where level = {{ level }}
),
{%- endfor %}
{%- endmacro %}


{% macro _epochs_table(epochs) %}
    {%- set lines = [] -%}
    {%- for epoch in epochs -%}
        {%- do lines.append(
            '(' ~ dbt_history._string_literal(epoch.branch) ~ ', ' ~ epoch.since ~ 'L, '
                ~ (epoch.until if epoch.until is not none else 9223372036854775807) ~ 'L, '
            ~ epoch.epoch ~ ', ' ~ epoch.fork ~ 'L, ' ~ epoch.level ~ ', '
                ~ dbt_history._lineage(epoch) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- set columns = 'branch, since, until, epoch, fork, level, lineage' -%}
    {%- if not lines -%}
        {%- do return(
            "(select '' as branch, 0L as since, 0L as until, 0 as epoch, 0L as fork, 0 as level,"
                ~ " array(named_struct('branch', '', 'fork', 0L)) as lineage where false) as"
                ~ " epochs"
        ) -%}
    {%- endif -%}
    {%- do return(
        '(\n    select * from values\n        ' ~ lines | join(',\n        ')
            ~ '\n        as epochs(' ~ columns ~ ')\n) as epochs'
    ) -%}
{% endmacro %}


{# A branch and its ancestors, each from its fork on. #}
{% macro _lineage(epoch) %}
    {%- set lines = [] -%}
    {%- for link in [{'branch': epoch.branch, 'fork': epoch.fork}] + epoch.chain -%}
        {%- do lines.append(
            "named_struct('branch', " ~ dbt_history._string_literal(link.branch) ~ ", 'fork', "
                ~ link.fork ~ 'L)'
        ) -%}
    {%- endfor -%}
    {%- do return('array(' ~ lines | join(', ') ~ ')') -%}
{% endmacro %}


{#
    What the writes of a level inherit if their branch has no state of the feature: one row per item
    (the key without the branch) and epoch. The nearest branch of the chain that has any state up to
    its point applies; a tombstone there means that nothing is inherited.
#}
{% macro _inherited_ctes(features, pending, level) %}
{%- set item = dbt_history._c_item(features) -%}
{%- set suffix = level.suffix -%}
links{{ suffix }} as (
    select distinct
        {{ 'written.' ~ item | join(', written.') }},
        written.epoch,
        chains.*
    from {{ level.writes }} as written
    inner join {{ dbt_history._chains_table(pending.epochs, level.number) | indent(4) }}
        on written.epoch = chains.of_epoch
),

{{ dbt_history._known_ctes(features, pending, level) }}

inherited{{ suffix }} as (
    select
        {{ item | join(', ') }},
        epoch,
        if(state.action <> 'DELETE', state, null) as inherited
    from (
        select
            {{ item | join(', ') }},
            epoch,
            max_by(state, struct(-place, state.i)) as state
        from known{{ suffix }}
        where state.txn > ancestor_fork
            and state.txn <= ancestor_at
            and (until is null or until > ancestor_at or state.action = 'DELETE')
        group by {{ item | join(', ') }}, epoch
    ) as nearest
),
{%- endmacro %}


{#
    The states that a level may inherit: CTE `states_before`, those that lower levels made in this
    run; CTE `known`, these and the stored ones, for each link of a branch to an ancestor.
#}
{% macro _known_ctes(features, pending, level) %}
{%- set suffix = level.suffix -%}
{%- set lower = pending.levels | select('lt', level.number) | list -%}
states_before{{ suffix }} as (
    {%- for number in lower %}
    select
        {{ dbt_history._c_key(features) | join(', ') }},
        explode(new_states) as state
    from folded_{{ number }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- else %}
    select
        {{ dbt_history._c_key(features) | join(', ') }},
        cast(null as {{ features.state_type }}) as state
    from {{ level.writes }}
    where false
    {%- endfor %}
),

known{{ suffix }} as (
    {%- if lower %}
    select
        links.*,
        known.state,
        cast(null as bigint) as until
    from links{{ suffix }} as links
    inner join states_before{{ suffix }} as known
        on {{ dbt_history._same_item(features, 'known', 'links') }}
        and known.{{ dbt_history._prefixed('branch') }} = links.ancestor
    {%- endif %}
    {%- if lower and pending.states is not none %}

    union all

    {%- endif %}
    {%- if pending.states is not none %}
    select
        links.*,
        {{ dbt_history._stored_state(features, pending) | indent(8) }} as state,
        stored.`txn_next` as until
    from links{{ suffix }} as links
    inner join {{ dbt_history._quoted_relation(pending.states) }} as stored
        on stored.`branch` = links.ancestor
        and {{ dbt_history._same_feature(features, 'links', dbt_history._item(features)) }}
    where stored.`txn` <= {{ dbt_history._bound_of_chains(pending, level, 'max') }}L
        and (
            stored.`txn_next` is null
                or stored.`txn_next` > {{ dbt_history._bound_of_chains(pending, level, 'min') }}L
                or stored.`txn_next` = stored.`txn`
        )
    {%- elif not lower %}
    select
        links.*,
        cast(null as {{ features.state_type }}) as state,
        cast(null as bigint) as until
    from links{{ suffix }} as links
    where false
    {%- endif %}
),
{%- endmacro %}


{% macro _chains_table(epochs, level) %}
    {%- set lines = [] -%}
    {%- for epoch in epochs if epoch.level == level -%}
        {%- for link in epoch.chain -%}
            {%- do lines.append(
                '(' ~ epoch.epoch ~ ', ' ~ loop.index ~ ', '
                    ~ dbt_history._string_literal(link.branch) ~ ', ' ~ link.at ~ 'L, ' ~ link.fork
                    ~ 'L)'
            ) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(
        '(\n    select * from values\n        ' ~ lines | join(',\n        ')
        ~ '\n        as chains(of_epoch, place, ancestor, ancestor_at, ancestor_fork)\n) as chains'
    ) -%}
{% endmacro %}


{#
    The earliest or latest point at which the branches of a level look up inherited states; at most
    `after`.
#}
{% macro _bound_of_chains(pending, level, which) %}
    {%- set points = [] -%}
    {%- for epoch in pending.epochs if epoch.level == level.number -%}
        {%- for link in epoch.chain -%}
            {%- do points.append([link.at, pending.after] | min) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return((points | max) if which == 'max' else (points | min)) -%}
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
    A state of the written item on the write's own branch or one of its ancestors, but not on a
    dropped branch of the same name.
#}
{% macro _is_of_line(branch, txn) %}
    {%- do return(
        'exists(written.lineage, line -> line.branch = ' ~ branch ~ ' and line.fork < ' ~ txn ~ ')'
    ) -%}
{% endmacro %}
