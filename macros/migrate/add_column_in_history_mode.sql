{#
    Adds a column to a history table as of an instant: versions get the default from `at` on, and
    keep NULL before it.

                   at                              at
        [ version ---- open   ->  [ column NULL ---)[ column = default ---- open
                   [ ---)                           [ column = default ---)

    Only current versions are divided; a version that starts at `at` gets the default in place,
    whether it has ended or not. Several columns added at one instant make one new version. An empty
    table only gets the column.
#}
{% macro add_column_in_history_mode(
    table, column, default, at, key, type='string', dry_run=false
) %}
    {% set caller = 'add_column_in_history_mode' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = dbt_history._history_problems(migrated, key)
        + dbt_history._column_problems(migrated, column, key, type) %}
    {% set instant = dbt_history._migration_instant(at, 'at', problems) %}
    {% if not problems %}
        {% set value = dbt_history._migration_value(default, type, problems) %}
    {% endif %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set operation = {
        'operation': caller, 'column': column | lower, 'default': default | string,
        'is_null': default is none, 'at': instant, 'type': type | lower,
    } %}
    {% if column | lower in migrated.types
        and dbt_history._is_migrated(migrated.relation, operation, caller) %}
        {% do return(none) %}
    {% endif %}
    {% set later = dbt_history._later_rows(migrated, key, instant) %}
    {% do dbt_history._refuse_migration(
        dbt_history._later_row_problems(migrated, instant, later), migrated, caller,
    ) %}
    {% set ended = dbt_history._ended_versions(migrated, key, instant) %}
    {% set touched = dbt_history._count_rows(
        migrated.relation,
        dbt_history._quote(dbt_history.convention('fivetran').active) ~ ' = true or ' ~ ended,
    ) %}
    {% do dbt_history._refuse_migration(
        dbt_history._unread_change_problems(migrated, instant) if touched else [], migrated,
        caller,
    ) %}
    {% if not dry_run %}
        {% if column | lower not in migrated.types %}
            {% do dbt_history._append_columns(
                migrated.relation, [{'name': column, 'type': type}], caller,
            ) %}
            {% set migrated = dbt_history._migrated_table(table, caller) %}
        {% endif %}
        {% if touched %}
            {% do dbt_history._run_migration(
                migrated,
                dbt_history._new_period_sql(
                    migrated, key, column, value, instant, 'true', later, ended,
                ),
                operation, caller, begins=instant,
            ) %}
        {% endif %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would get' if dry_run else 'has') ~ ' the column ' ~ column ~ ', with a value in '
            ~ touched ~ ' versions',
    ) %}
{% endmacro %}
