{#
    The staged rows as rows of the table: one row a staged row, every column of the table under its prefix and type,
    and what the rules need to order them.

        kind       1 upsert (replace), 2 update, 3 delete, 4 earliest_start; NULL for an unknown stage
        at         where the row stands on the time axis: its start, or the end of a delete row
        position   _order, NULL if there is none
        unmodified lower-case names of the columns that keep their value; of an update row a column the SELECT lacks is one of them
#}
{% macro _batch_rows(staged, columns, conv, filter=none) %}
    {%- set names = staged.names -%}
    {%- set missing = [] -%}
    {%- for column in columns if column.name | lower not in names -%}
        {%- do missing.append(dbt_history._string_literal(column.name | lower)) -%}
    {%- endfor -%}
    select
        {{ '`_batch`' if '_batch' in names else 'cast(null as bigint)' }} as batch,
        case `_stage`
            when 'upsert' then 1
            when 'replace' then 1
            when 'update' then 2
            when 'delete' then 3
            when 'earliest_start' then 4
        end as kind,
        if(`_stage` = 'delete', {{ dbt_history._staged_column(staged, {'name': conv.end, 'type': conv.type}) }}, {{ dbt_history._staged_column(staged, {'name': conv.start, 'type': conv.type}) }}) as at,
        {{ 'cast(`_order` as bigint)' if '_order' in names else 'cast(null as bigint)' }} as position,
        {{ dbt_history._unmodified_names(staged, missing) }} as unmodified,
        `__evaluated_at` as evaluated_at
        {%- for column in columns %},
        {{ dbt_history._staged_column(staged, column) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from {{ staged.relation }}
    {%- if filter %}
    where {{ filter }}
    {%- endif %}
{%- endmacro %}


{# A staged column in the type of the table; NULL where the SELECT has no such column. #}
{% macro _staged_column(staged, column) %}
    {%- set name = staged.names.get(column.name | lower) -%}
    {%- if name is none -%}
        {%- do return('cast(null as ' ~ dbt_history._ddl_type(column.type) ~ ')') -%}
    {%- endif -%}
    {%- set is_same = {'name': name, 'type': column.type} in staged.columns -%}
    {%- do return(dbt_history._quote(name) if is_same else 'cast(' ~ dbt_history._quote(name) ~ ' as ' ~ dbt_history._ddl_type(column.type) ~ ')') -%}
{% endmacro %}


{% macro _unmodified_names(staged, missing) %}
    {%- set said = "coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)), cast(array() as array<string>))"
        if '_unmodified' in staged.names else 'cast(array() as array<string>)' -%}
    {%- do return('if(`_stage` = \'update\', array_union(' ~ said ~ ', array(' ~ missing | join(', ') ~ ')), ' ~ said ~ ')' if missing else said) -%}
{% endmacro %}
