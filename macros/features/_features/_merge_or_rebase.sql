{#
    A merge or a rebase: compares, refuses conflicts, and appends the writes to the log. Returns
    {'txn', 'head', 'compared'}: the transaction, none if nothing had to be written, the last
    transaction before it, and the last one of the parent that was compared.
#}
{% macro _merge_or_rebase(call, writes, kind, payload, json, said, even_if_ahead, dry_run) %}
    {% if call.epoch is none %}
        {% do call.problems.append('there is no branch ' ~ call.branch) %}
        {% do dbt_history._refuse_branch(call, 'the branch cannot be combined') %}
    {% endif %}
    {% set states = call.table.relation %}
    {% set head = dbt_history._head_of_log(writes, states) %}
    {% if not said.app_id %}
        {% do call.problems.append('no app_id: who writes?') %}
    {% endif %}
    {% if head.ahead and not even_if_ahead %}
        {% do call.problems.append(
            'the log is ahead of the states by ' ~ head.ahead
                ~ ' writes: run the model first, or say even_if_ahead to go on without them'
        ) %}
    {% endif %}
    {% set columns = dbt_history._table_columns(dbt_history._table_name(writes)) %}
    {% set known = columns | map(attribute='name') | map('lower') | list %}
    {% for name in ['author', 'message'] if said[name] and name not in known %}
        {% do call.problems.append('the log has no column ' ~ name) %}
    {% endfor %}
    {# Without them a merge would overwrite a pending write, or be applied in part. #}
    {% for name in ['expected_uuid', 'mode']
        if head.ahead and even_if_ahead and name not in known %}
        {% do call.problems.append(
            'even_if_ahead: the log has no column ' ~ name ~ ' and is ahead of the states by '
                ~ head.ahead ~ ' writes: run the model first'
        ) %}
    {% endfor %}
    {% set columns_of_states = dbt_history._table_columns(states) %}
    {% set problem = dbt_history._payload_problem(
        columns_of_states, columns, call.table.key, payload,
    ) %}
    {% do call.problems.append(problem) if problem %}
    {% do dbt_history._refuse_branch(call, 'the branch cannot be combined') %}
    {% set payload = dbt_history._payload_of(
        columns_of_states, columns, call.table.key, payload,
    ) %}
    {% set features = dbt_history._features_of(
        columns_of_states, call.table.key, payload, json,
    ) %}
    {% set ctes = dbt_history._sides_ctes(
        features, dbt_history._quoted_relation(states), call.epochs, call.epoch,
    ) %}
    {% do dbt_history._refuse_conflicts(call, features, ctes) %}
    {% set target = {
        'writes': dbt_history._table_name(writes), 'head': head.txn, 'txn': head.txn + 1,
        'branch': call.epoch.parent if kind == 'merge' else call.branch,
        'there': 'theirs' if kind == 'merge' else 'mine',
    } %}
    {% set changes = run_query(
        'with ' ~ ctes ~ ' select count(*) from sides where not '
            ~ dbt_history._same_side(features, 'merged', target.there)
    ).rows[0][0] | int %}
    {% do dbt_history._refuse_too_many_writes(changes, call.caller_name) %}
    {% if changes and not dry_run %}
        {% do dbt_history._append_writes(
            target.writes, head.txn,
            dbt_history._combined_sql(features, ctes, target, said, known, call.caller_name),
            call.caller_name
        ) %}
    {% endif %}
    {% do log(
        'dbt_history: ' ~ kind ~ ' of ' ~ call.branch ~ ': ' ~ changes ~ ' writes on '
            ~ target.branch
        ~ (' would be' if dry_run else '') ~ (' transaction ' ~ target.txn if changes else ''),
        info=true
    ) %}
    {% do return({
        'txn': target.txn if changes and not dry_run else none, 'head': head.txn,
        'compared': [head.txn, head.applied] | min,
    }) %}
{% endmacro %}


{% macro _refuse_conflicts(call, features, ctes) %}
    {% set item = dbt_history._quoted(dbt_history._item(features)) %}
    {% set found = run_query(
        'with ' ~ ctes ~ ' select ' ~ item | join(', ')
            ~ ', clash.`column`, clash.`attribute` from sides lateral view explode(clashes)'
            ~ ' clashing as clash order by '
        ~ item | join(', ') ~ ', clash.`column`, clash.`attribute`'
    ).rows %}
    {% if found | length %}
        {% set lines = [] %}
        {% for row in found %}
            {% if loop.index <= 20 %}
                {% do lines.append(row.values() | map('string') | join(' ')) %}
            {% endif %}
        {% endfor %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            call.caller_name, 'both sides changed the same; nothing was written',
            got=found | length ~ ' conflicts (' ~ dbt_history._item(features) | join(', ')
                ~ ', column, attribute)\n    ' ~ lines | join('\n    '),
            way_out='decide them on the branch or its parent (branch_conflicts shows the three'
                ~ ' contents), then run it again',
        )) %}
    {% endif %}
{% endmacro %}


{#
    The writes that make the target equal to the merged result; they expect the states that were
    compared. `known`: the columns of the log, some of which are optional.
#}
{% macro _combined_sql(features, ctes, target, said, known, caller_name) %}
    {%- set item = dbt_history._quoted(dbt_history._item(features)) -%}
    {%- set attribution = dbt_history._attribution_of_writes(said, known) -%}
    insert into {{ target.writes }} (
        `txn`, `position`, `action`, `branch`, {{ item | join(', ') }},
        {{ attribution | map(attribute='name') | join(', ') }},
        {{- ' `expected_uuid`,' if 'expected_uuid' in known }}
        {{- ' `mode`,' if 'mode' in known }}
        {{ dbt_history._quoted(features.payload) | join(', ') }}
    )
    with {{ ctes | indent(4) }}

    select
        {{ target.txn }}L,
        {{ dbt_history._position_of_write(item, caller_name) | indent(8) }},
        case
            when merged is null then 'DELETE'
            when {{ target.there }} is null then 'CREATE'
            else 'UPDATE'
        end,
        {{ dbt_history._string_literal(target.branch) }},
        {{ item | join(', ') }},
        {{ attribution | map(attribute='value') | join(', ') }},
        {%- if 'expected_uuid' in known %}
        {{ target.there }}_uuid,
        {%- endif %}
        {%- if 'mode' in known %}
        'all_or_nothing',
        {%- endif %}
        {%- for name in features.payload %}
        merged.p{{ loop.index0 }}{{ ',' if not loop.last }}
        {%- endfor %}
    from sides
    where not {{ dbt_history._same_side(features, 'merged', target.there) }}
        and (select coalesce(max(`txn`), 0) from {{ target.writes }}) = {{ target.head }}L
{% endmacro %}


{#
    The position of a write in its transaction, by `order`. A transaction has no place for more:
    all of it would fail when the states are computed. So the statement fails.
#}
{% macro _position_of_write(order, caller_name) -%}
{%- set place = 'row_number() over (order by ' ~ order | join(', ') ~ ')' -%}
if(
    {{ place }} > {{ dbt_history._writes_of_transaction() }},
    raise_error({{ dbt_history._text_on_one_line(
        dbt_history._too_many_writes(none, caller_name),
    ) }}),
    {{ place }} - 1
)
{%- endmacro %}


{% macro _writes_of_transaction() %}
    {%- do return(1048576) -%}
{% endmacro %}


{% macro _refuse_too_many_writes(number, caller_name) %}
    {% if number > dbt_history._writes_of_transaction() %}
        {% do exceptions.raise_compiler_error(
            dbt_history._too_many_writes(number, caller_name)
        ) %}
    {% endif %}
{% endmacro %}


{% macro _too_many_writes(number, caller_name) %}
    {% set ways_out = {
        'resync_features': 'resync in parts: one call per part, with `where` on the key columns,'
            ~ ' such as one space per call',
        'rewind': 'rewind in parts: with `only`, such as one space, and run the model after each;'
            ~ ' or resync_features with `where`, from the states at that point as `snapshot`',
    } %}
    {% do return(dbt_history._message(
        caller_name, 'these are too many writes for one transaction; nothing was written',
        got=number if number is not none else 'more',
        expected='at most ' ~ dbt_history._writes_of_transaction(),
        way_out=ways_out.get(
            caller_name,
            'write a part of the changes yourself, to the branch that would get them, in'
                ~ ' transactions of its own, and run the model: what is there is not written again',
        ),
    )) %}
{% endmacro %}


{% macro _attribution_of_writes(said, known) %}
    {% set cells = [{'name': '`app_id`', 'value': dbt_history._string_literal(said.app_id)}] %}
    {% for name in ['author', 'message'] if name in known %}
        {% do cells.append({
            'name': '`' ~ name ~ '`',
            'value': dbt_history._string_literal(said[name]) if said[name]
                else 'cast(null as string)',
        }) %}
    {% endfor %}
    {% do cells.append({
        'name': '`at`',
        'value': 'current_timestamp()' if said.at is none
            else dbt_history._instant(said.at, {'type': 'timestamp'}, 'merge_branch'),
    }) %}
    {% do return(cells) %}
{% endmacro %}


{#
    Appends writes at the end of the log, unless another writer did so meanwhile: the statement
    reads the log that it writes, and writes nothing if `head` is not its last transaction. Returns
    the number of rows from the metrics of its own commit: rows above `head` may be another
    writer's.
#}
{% macro _append_writes(writes, head, sql, caller_name) %}
    {% set relation = dbt_history._relation_of(writes) %}
    {% set record = {
        'history_operation': caller_name, 'txn': head + 1, 'run': local_md5(invocation_id ~ sql),
    } %}
    {% set failed = dbt_history._guarded_insert(
        sql, dbt_history._record_setting(relation, record),
    ) %}
    {% if failed not in [none, 'conflict'] %}
        {# Runs it again without the handler, to get Spark's own message. #}
        {% do run_query(sql) %}
    {% endif %}
    {% set own = namespace(written=0) %}
    {% for entry in dbt_history._delta_history_entries(relation, 20)
        if failed is none and entry.said is string and record.run in entry.said %}
        {% set own.written = entry.metrics.get('numOutputRows', 0) | int %}
    {% endfor %}
    {% set is_moved = not own.written
        and run_query('select coalesce(max(`txn`), 0) from ' ~ writes).rows[0][0] | int != head %}
    {% if failed is not none or is_moved %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the log was written by another one at the same time; nothing was written',
            got=failed or 'a transaction after ' ~ head,
            way_out='run it again, after the model of the states',
        )) %}
    {% endif %}
    {% do return(own.written) %}
{% endmacro %}
