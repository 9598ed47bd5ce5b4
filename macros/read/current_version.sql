{#
    The current version of a table: the greatest start or end of any of its rows, open ends
    excluded.

        valid_from  valid_to
        1           open         the delete at 2 counts too: version 2
        1           2

    `empty_table_version` is returned for a table without rows. Cleaning does not lower the version.
    Returns a sub-query of one row and one column, `version`: for the FROM clause, or as a value.
#}
{% macro current_version(relation, convention=none, empty_table_version=none) %}
    {%- set reader = dbt_history._reader(relation, convention, 'current_version') -%}
    {%- set convention = reader.convention -%}
    {%- set empty = 'cast(null as ' ~ convention.type ~ ')' if empty_table_version is none
        else dbt_history._instant(empty_table_version, convention, 'current_version') -%}
    {%- set marks = dbt_history._marks(reader.table) -%}
    {%- set sql -%}
(
    select coalesce(max(version), {{ empty }}) as version
    from (
        select
            greatest(
                max({{ dbt_history._quote(convention.start) }}),
                max({{ dbt_history._end_of_period(convention) }})
            ) as version
        from {{ reader.from }} as versions
        {%- if marks is not none %}

        union all

        select max(try_cast(instant as {{ convention.type }})) as version
        from {{ dbt_history._quoted_relation(marks) }}
        where kind = 'horizon'
            and table_name = {{ dbt_history._string_literal(reader.table.identifier | lower) }}
        {%- endif %}
    ) as versions
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
