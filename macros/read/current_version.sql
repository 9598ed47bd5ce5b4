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
    {%- do return(dbt_history._current_version_sql(
        reader.from, reader.table, reader.convention,
        'cast(null as ' ~ reader.convention.type ~ ')' if empty_table_version is none
            else dbt_history._instant(empty_table_version, reader.convention, 'current_version'),
    )) -%}
{% endmacro %}
