{#
    Ends a column of a history table as of an instant: current versions with a value continue with
    NULL, past versions keep their values, and the column stays in the table.

        at                    at
        [ x ------ open   ->  [ x ----)[ NULL ------ open
#}
{% macro drop_column_in_history_mode(table, column, at, key, dry_run=false) %}
    {% set caller = 'drop_column_in_history_mode' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = dbt_history._history_problems(migrated, key)
        + dbt_history._column_problems(migrated, column, key) %}
    {% if not problems and column | lower not in migrated.types %}
        {% do problems.append('the table has no column ' ~ column) %}
    {% endif %}
    {% set instant = dbt_history._migration_instant(at, 'at', problems) %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set operation = {'operation': caller, 'column': column | lower, 'at': instant} %}
    {% if dbt_history._is_migrated(migrated.relation, operation, caller) %}
        {% do return(none) %}
    {% endif %}
    {% set later = dbt_history._later_rows(migrated, key, instant) %}
    {% do dbt_history._refuse_migration(
        dbt_history._later_row_problems(migrated, instant, later), migrated, caller,
    ) %}
    {% set has_value = dbt_history._quote(migrated.names[column | lower]) ~ ' is not null' %}
    {% set active = dbt_history._quote(dbt_history.convention('fivetran').active) ~ ' = true' %}
    {% set touched = dbt_history._count_rows(migrated.relation, active ~ ' and ' ~ has_value) %}
    {% do dbt_history._refuse_migration(
        dbt_history._unread_change_problems(migrated, instant) if touched else [], migrated,
        caller,
    ) %}
    {% if touched and not dry_run %}
        {% set none_of_type = 'cast(null as '
            ~ dbt_history._ddl_type(migrated.types[column | lower]) ~ ')' %}
        {% do dbt_history._run_migration(
            migrated,
            dbt_history._new_period_sql(
                migrated, key, column, none_of_type, instant, has_value, later,
            ),
            operation, caller, begins=instant,
        ) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would end ' if dry_run else 'ends ') ~ column ~ ' in ' ~ touched ~ ' current versions',
    ) %}
{% endmacro %}
