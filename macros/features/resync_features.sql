{#
    Resumes the history of a space after a suspension: appends writes to the log that make the
    states equal to a snapshot of the current features, one write per feature that differs, in one
    transaction marked `resync`.

        states     f (v: 1)   g (v: 1)    suspended ...    f v2 (v: 3)   g v2 DELETE   h v1 CREATE
        snapshot                                           f (v: 3)      -             h (v: 2)

    Suspended means that the space's writes are not in the log, so the single changes of that time
    are unknown. `where` limits log, states and snapshot to the space. With branches, `main` and
    those that the snapshot names are compared with it; the others stay as they are. It is refused
    while the log has writes of the space that the states lack, because the difference would be
    wrong. `payload` is empty for all columns of the content; one that lacks some is refused,
    because a write is the whole content. Returns the number of the transaction, none if nothing
    differs.
#}
{% macro resync_features(
    writes, states, snapshot, app_id, id='id', payload=[], json=[], author=none, message=none,
    at=none, where=none, even_if_ahead=false, dry_run=false
) %}
    {% if not execute %}{% do return(none) %}{% endif %}
    {% if dbt_history._belongs_to_iceberg(writes) %}
        {% do dbt_history._refuse_iceberg(
            writes, 'resync_features', 'a log of writes in Delta: of two at once it refuses one',
        ) %}
    {% endif %}
    {% set call = {
        'writes': dbt_history._table_name(writes), 'states': dbt_history._table_name(states),
        'snapshot': snapshot if snapshot is string and '(' in snapshot
            else dbt_history._table_name(snapshot),
        'app_id': app_id, 'key': dbt_history._key_columns(id),
        'json': dbt_history._key_columns(json) | map('lower') | list, 'author': author,
        'message': message, 'at': at, 'where': where or 'true',
    } %}
    {% set columns = dbt_history._table_columns(call.states) %}
    {% set columns_of_log = dbt_history._table_columns(call.writes) %}
    {% set problem = dbt_history._payload_problem(columns, columns_of_log, call.key, payload) %}
    {% if problem %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'resync_features', 'content would be lost; nothing was written', got=problem,
            way_out='name the columns in payload; the snapshot needs all of them',
        )) %}
    {% endif %}
    {% do call.update({
        'payload': dbt_history._payload_of(columns, columns_of_log, call.key, payload),
    }) %}
    {% set applied = dbt_history._last_applied(states, call.states) %}
    {% set newest = run_query('select max(`txn`) from ' ~ call.writes).rows[0][0] %}
    {% set ahead = run_query(
        'select count(*) from ' ~ call.writes ~ ' where `txn` > ' ~ applied ~ 'L and ('
            ~ call.where ~ ')'
    ).rows[0][0] | int %}
    {% if ahead and not even_if_ahead and not dry_run %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'resync_features', 'the log is ahead of the states; nothing was written',
            got=ahead ~ ' writes after transaction ' ~ applied,
            expected='states that have all writes',
            way_out='run the model of the states, then this operation again; or say even_if_ahead'
                ~ ' to go on without those writes',
        )) %}
    {% endif %}
    {% set txn = (newest or 0) | int + 1 %}
    {% do call.update({'head': txn - 1}) %}
    {% set parts = dbt_history._resync_sql(call, txn) %}
    {% set sql = parts.insert ~ '\n' ~ parts.select %}
    {% if dry_run %}
        {% do print(sql ~ ';') %}
        {% do return(none) %}
    {% endif %}
    {% set written = dbt_history._append_writes(call.writes, call.head, sql, 'resync_features') %}
    {% do log(
        'dbt_history: ' ~ written ~ ' writes of transaction ' ~ txn
            ~ ' make the states equal to the snapshot',
        info=true,
    ) %}
    {% do return(txn if written else none) %}
{% endmacro %}


{# The INSERT in two parts, which the caller combines: {'insert', 'select'}. #}
{% macro _resync_sql(call, txn) %}
    {%- set is_resync = call.get('is_resync', true) -%}
    {%- set insert -%}
insert into {{ call.writes }} (
    `txn`, `position`, `action`, {{ dbt_history._quoted(call.key) | join(', ') }},
    `app_id`, `author`, `message`, `at`,
    {{- ' `resync`,' if is_resync }} {{ dbt_history._quoted(call.payload) | join(', ') }}
)
    {%- endset -%}
    {%- do return({
        'insert': insert, 'select': dbt_history._resync_writes(call, txn, is_resync),
    }) -%}
{% endmacro %}


{#
    The writes that make the states equal to the snapshot; none if the log has grown meanwhile.

        states      main: f, g    draft: h    old: h     old is dropped
        snapshot    main: f                              DELETE g; draft and old stay
        snapshot    main: f, g    draft: i               DELETE h, PUT i on draft
#}
{% macro _resync_writes(call, txn, is_resync) %}
    {%- set key = dbt_history._quoted(call.key) -%}
    {%- set is_branched = is_resync and 'branch' in call.key | map('lower') -%}
    {%- set payload = dbt_history._quoted(call.payload) -%}
    {%- set types = dbt_history._types_by_name(dbt_history._table_columns(call.states)) -%}
    {%- set sql -%}
with present as (
    select *{{ " except (`branch`), coalesce(`branch`, 'main') as `branch`" if is_branched }}
    from {{ call.snapshot }} as present
    where {{ call.where }}
),

heads as (
    select *
    from {{ call.states }}
    where `txn_next` is null and ({{ call.where }})
    {%- if is_branched %}
        and coalesce(`branch`, 'main') in (select 'main' union all select `branch` from present)
    {%- endif %}
),

differences as (
    select
        if(present.{{ key[0] }} is null, 'DELETE', 'PUT') as action
        {%- for name in key %},
        coalesce(present.{{ name }}, heads.{{ name }}) as {{ name }}
        {%- endfor %}
        {%- for name in payload %},
        present.{{ name }}
        {%- endfor %}
    from present
    full outer join heads
        on
        {%- for name in key %}
        present.{{ name }} = heads.{{ name }}{{ ' and' if not loop.last }}
        {%- endfor %}
    where present.{{ key[0] }} is null or heads.{{ key[0] }} is null or not (
        {%- for name in call.payload %}
        {{ dbt_history._same_content(
            'present', 'heads', name, types[name | lower], name | lower in call.json,
        ) }}{{ ' and' if not loop.last }}
        {%- endfor %}
    )
)

select
    {{ txn }}L,
    {{ dbt_history._position_of_write(
        key, 'resync_features' if is_resync else 'rewind',
    ) | indent(4) }},
    action,
    {{ key | join(', ') }},
    {{ dbt_history._string_literal(call.app_id) }},
    {{ dbt_history._string_literal(call.author) if call.author else 'cast(null as string)' }},
    {{ dbt_history._string_literal(call.message) if call.message else 'cast(null as string)' }},
    {{ 'current_timestamp()' if call.at is none
        else dbt_history._instant(call.at, {'type': 'timestamp'}, 'resync_features') }},
    {%- if is_resync %}
    true,
    {%- endif %}
    {{ payload | join(', ') }}
from differences
where (select coalesce(max(`txn`), 0) from {{ call.writes }}) = {{ call.head }}L
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{% macro _same_content(left, right, name, type, is_json) %}
    {%- set sides = [] -%}
    {%- for side in [left, right] -%}
        {%- set value = side ~ '.' ~ dbt_history._quote(name) -%}
        {%- do sides.append(
            'coalesce(to_json(try_parse_json(' ~ value ~ ')), ' ~ value ~ ')' if is_json
                else dbt_history._comparable(value, type)
        ) -%}
    {%- endfor -%}
    {%- do return(sides | join(' <=> ')) -%}
{% endmacro %}
