{# `from`: the rows that count; `table`: the relation whose retention horizon counts, too. #}
{% macro _current_version_sql(from, table, convention, empty) %}
    {%- set marks = dbt_history._marks(table) -%}
    {%- set sql -%}
(
    select coalesce(max(version), {{ empty }}) as version
    from (
        select
            greatest(
                max({{ dbt_history._quote(convention.start) }}),
                max({{ dbt_history._end_of_period(convention) }})
            ) as version
        from {{ from }} as versions
        {%- if marks is not none %}

        union all

        select max(try_cast(instant as {{ convention.type }})) as version
        from {{ dbt_history._quoted_relation(marks) }}
        where kind = 'horizon'
            and table_name = {{ dbt_history._string_literal(table.identifier | lower) }}
        {%- endif %}
    ) as versions
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
