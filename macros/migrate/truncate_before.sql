{#
    Removes the rows that were synced before an instant, or with `deleted_column` marks them as
    deleted. Rows without a sync time are kept. Does nothing if the table does not exist. A log is
    refused: its rows never change.
#}
{% macro truncate_before(
    table, at, synced_column='_fivetran_synced', deleted_column=none, dry_run=false
) %}
    {% set caller = 'truncate_before' %}
    {% set migrated = dbt_history._migrated_table(table, caller, is_optional=true) %}
    {% if migrated is none %}
        {% do dbt_history._log_info(caller, table, 'does not exist; nothing to do') %}
        {% do return(none) %}
    {% endif %}
    {% set problems = dbt_history._log_problems(
        migrated,
        'truncate the table whose changes it has; erase_subject makes values of one key NULL',
    ) %}
    {% set instant = dbt_history._migration_instant(at, 'at', problems) %}
    {% if migrated.types.get(synced_column | lower) != 'timestamp' %}
        {% do problems.append('the table has no timestamp column ' ~ synced_column) %}
    {% endif %}
    {% if deleted_column and migrated.types.get(deleted_column | lower) != 'boolean' %}
        {% do problems.append('the table has no boolean column ' ~ deleted_column) %}
    {% endif %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set before = dbt_history._quote(synced_column) ~ ' < ' ~ instant %}
    {% set statement = 'delete from ' ~ dbt_history._quoted_relation(migrated.relation) %}
    {% if deleted_column %}
        {% set before = before ~ ' and not coalesce(' ~ dbt_history._quote(deleted_column)
            ~ ', false)' %}
        {% set statement = 'update ' ~ dbt_history._quoted_relation(migrated.relation) ~ ' set '
            ~ dbt_history._quote(deleted_column) ~ ' = true' %}
    {% endif %}
    {% set rows = dbt_history._count_rows(migrated.relation, before) %}
    {% if rows and not dry_run %}
        {% set operation = {'operation': caller, 'at': instant, 'deleted_column': deleted_column} %}
        {% do dbt_history._run_migration(
            migrated, statement ~ ' where ' ~ before, operation, caller,
        ) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would have ' if dry_run else 'has ') ~ rows ~ ' rows '
            ~ ('marked as deleted' if deleted_column else 'removed') ~ ', synced before ' ~ instant
    ) %}
{% endmacro %}
