{#
    Converts a table with a delete flag to a history table, in one commit: every row becomes the
    only version of its record.

        deleted = false   ->  [ greatest _fivetran_synced of the table ------- open, active
        deleted = true    ->  starts and ends at `least`, not active

    `_fivetran_deleted` is dropped; any other delete column is kept.
#}
{% macro soft_delete_to_history(
    table, deleted_column='_fivetran_deleted', least='0001-01-01T00:00:00Z', dry_run=false
) %}
    {% set caller = 'soft_delete_to_history' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = [] %}
    {% set instant = dbt_history._migration_instant(least, 'least', problems) %}
    {% set operation = {
        'operation': caller, 'deleted_column': deleted_column | lower, 'least': instant,
    } %}
    {% if not problems and dbt_history._is_migrated(migrated.relation, operation, caller) %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._refuse_migration(
        problems + dbt_history._soft_delete_problems(migrated, deleted_column), migrated, caller,
    ) %}
    {% if not dry_run %}
        {% set history = dbt_history._as_history(migrated, deleted_column, instant) %}
        {% set statement = dbt_history._replace_table_sql(
            migrated.relation, migrated.relation, history.sql, history.columns,
        ) %}
        {% do dbt_history._run_migration(migrated, statement, operation, caller) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation, ('would be' if dry_run else 'is') ~ ' in history mode',
    ) %}
{% endmacro %}
