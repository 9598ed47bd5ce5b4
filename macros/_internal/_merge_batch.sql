{# One batch as one MERGE: every row of the source is one operation on one stored version, or one new version. #}
{% macro _merge_sql(target, staged, columns, settings, plan) %}
    {%- set conv = settings.convention -%}
    {%- set identity = dbt_history._identity_columns(conv) -%}
    {%- set period = [conv.end, conv.active] | reject('none') | list -%}
    {%- set names = columns | map(attribute='name') | list -%}
    merge into {{ dbt_history._full_name(target) }} as history
    using (
        with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(8) }}

        select
            op
            {%- for name in identity %},
            {#- An added row matches nothing, but keeps its key for the join. #}
            if(op in ('add', 'skip'), null, {{ 'at' if loop.first else dbt_history._c(name) }}) as {{ dbt_history._quote('match_' ~ name) }}
            {%- endfor %}
            {%- for name in names %},
            {{ dbt_history._c(name) }}
            {%- endfor %}
        from resolved
        where op is not null
    ) as operations
    on
        {{ dbt_history._reach(conv, plan, 'history') }}
        {%- for name in settings.key %}
        and history.{{ dbt_history._quote(name) }} = operations.{{ dbt_history._c(name) }}
        {%- endfor %}
        {%- for name in identity %}
        and history.{{ dbt_history._quote(name) }} = operations.{{ dbt_history._quote('match_' ~ name) }}
        {%- endfor %}
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        {%- for name in period %}
        {{ dbt_history._quote(name) }} = operations.{{ dbt_history._c(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    when matched and operations.op = 'replace' then update set
        {%- for name in names %}
        {{ dbt_history._quote(name) }} = operations.{{ dbt_history._c(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched and operations.op = 'add' then insert (
        {%- for name in names %}
        {{ dbt_history._quote(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) values (
        {%- for name in names %}
        operations.{{ dbt_history._c(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    -- An operation that does not find its version must not vanish: nothing is committed then.
    when not matched and operations.op in ('remove', 'close', 'replace') then insert ({{ dbt_history._quote(conv.end) }})
    values (cast(raise_error('dbt_history: a version to change was not found') as {{ conv.type }}))
{%- endmacro %}
