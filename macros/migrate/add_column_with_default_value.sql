{#
    Adds a column with the default in every existing row, for any kind of table but a log, whose
    rows never change, and except in the tombstones of `late_events`. If the column is there
    already, with the same type, only the rows are updated, as the guide of the partner SDK asks; a
    repeated call, and one without a default, change nothing.
#}
{% macro add_column_with_default_value(table, column, default, type='string', dry_run=false) %}
    {% set caller = 'add_column_with_default_value' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = dbt_history._column_problems(migrated, column, [], type) %}
    {% do problems.extend(dbt_history._log_problems(
        migrated, 'add the column to the table whose changes it has',
    )) %}
    {% if not problems %}
        {% set value = dbt_history._migration_value(default, type, problems) %}
    {% endif %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set operation = {
        'operation': caller, 'column': column | lower, 'default': default | string,
        'is_null': default is none, 'type': type | lower,
    } %}
    {% set is_there = column | lower in migrated.types %}
    {% if is_there
        and dbt_history._is_migrated(migrated.relation, operation, caller, is_kept=true) %}
        {% do dbt_history._keep_migration(migrated.relation, operation) if not dry_run %}
        {% do return(none) %}
    {% endif %}
    {% set is_row = dbt_history._is_no_tombstone(migrated, caller) %}
    {% set rows = dbt_history._count_rows(migrated.relation, is_row) %}
    {% if not dry_run %}
        {% if not is_there %}
            {% do dbt_history._append_columns(
                migrated.relation, [{'name': column, 'type': type}], caller,
            ) %}
        {% endif %}
        {% if rows and default is not none %}
            {% set statement = 'update ' ~ dbt_history._quoted_relation(migrated.relation) ~ ' set '
                ~ dbt_history._quote(column) ~ ' = ' ~ value ~ ' where ' ~ is_row %}
            {% do dbt_history._run_migration(migrated, statement, operation, caller) %}
        {% endif %}
        {% do dbt_history._keep_migration(migrated.relation, operation)
            if default is not none %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would get' if dry_run else 'has') ~ ' the column ' ~ column ~ ', with its default in '
            ~ rows ~ ' rows',
    ) %}
{% endmacro %}
