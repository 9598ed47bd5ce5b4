{#
    From `at` on, a column has a new value in every active version for which `changes` is true. One
    MERGE:

        at                      at
        [ a -------- open   ->  [ a ----)[ a' -------- open     started before: closed and copied
             [ b --- open   ->  [ b' --- open                   starts then: changed in place
#}
{% macro _new_period_sql(migrated, key, column, value, at, changes) %}
    {%- set convention = dbt_history.convention('fivetran') -%}
    {%- set start = dbt_history._quote(convention.start) -%}
    {%- set end = dbt_history._quote(convention.end) -%}
    {%- set active = dbt_history._quote(convention.active) -%}
    {%- set kinds = [
        {'op': 'close', 'where': start ~ ' < ' ~ at ~ ' and ' ~ changes},
        {'op': 'add', 'where': start ~ ' < ' ~ at ~ ' and ' ~ changes},
        {'op': 'change', 'where': start ~ ' = ' ~ at ~ ' and ' ~ changes},
        {'op': 'refuse', 'where': start ~ ' > ' ~ at},
    ] -%}
    merge into {{ dbt_history._quoted_relation(migrated.relation) }} as history
    using (
        {%- for kind in kinds %}
        select
            '{{ kind.op }}' as op,
            {{ 'cast(null as timestamp)' if kind.op == 'add' else start }} as match_start
            {%- for name in migrated.names.values() %},
            {% if kind.op == 'add' and name | lower == column | lower %}{{ value }}
            {%- elif kind.op == 'add' and name | lower == convention.start %}{{ at }}
            {%- else %}{{ dbt_history._quote(name) }}
            {%- endif %} as {{ dbt_history._prefixed(name) }}
            {%- endfor %}
        from {{ dbt_history._quoted_relation(migrated.relation) }}
        where {{ active }} = true and {{ kind.where }}
        {%- if not loop.last %}
        union all
        {%- endif %}
        {%- endfor %}
    ) as operations
    on
        history.{{ active }} = true
        and history.{{ start }} = operations.match_start
        {%- for name in dbt_history._key_columns(key) %}
        and history.{{ dbt_history._quote(name) }}
            <=> operations.{{ dbt_history._prefixed(migrated.names[name | lower]) }}
        {%- endfor %}
    when matched and operations.op = 'close' then update set
        {{ end }} = {{ dbt_history._shift_by_gap(at, convention) }},
        {{ active }} = false
    when matched and operations.op = 'change' then update set
        {{ dbt_history._quote(migrated.names[column | lower]) }} = {{ value }}
    when matched and operations.op = 'refuse' then update set
        {{ end }} = cast(
            raise_error('dbt_history: an active version starts after the migration') as timestamp
        )
    when not matched and operations.op = 'add' then insert (
        {%- for name in migrated.names.values() %}
        {{ dbt_history._quote(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) values (
        {%- for name in migrated.names.values() %}
        operations.{{ dbt_history._prefixed(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    -- An operation that does not match its version raises an error: nothing is committed.
    when not matched then insert ({{ end }})
    values (cast(raise_error('dbt_history: a version to change was not found') as timestamp))
{%- endmacro %}


{# Refuses active versions that start after the instant of the migration. #}
{% macro _later_version_problems(migrated, at) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set row = run_query(
        'select count(*), cast(max(' ~ dbt_history._quote(convention.start) ~ ') as string) from '
            ~ dbt_history._quoted_relation(migrated.relation)
        ~ ' where ' ~ dbt_history._quote(convention.active) ~ ' = true and '
            ~ dbt_history._quote(convention.start) ~ ' > ' ~ at
    ).rows[0] %}
    {% if row[0] | int %}
        {% do return([
            row[0] ~ ' active versions start after ' ~ at ~ ', the latest at ' ~ row[1]
        ]) %}
    {% endif %}
    {% do return([]) %}
{% endmacro %}
