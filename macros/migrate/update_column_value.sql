{#
    Sets a column to one value in every row, including closed versions, except in the tombstones of
    `late_events`; none is NULL. Repeating it changes nothing. A log is refused: its rows never
    change.
#}
{% macro update_column_value(table, column, value, dry_run=false) %}
    {% set caller = 'update_column_value' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = dbt_history._column_problems(migrated, column, []) %}
    {% if not problems and column | lower not in migrated.types %}
        {% do problems.append('the table has no column ' ~ column) %}
    {% endif %}
    {% do problems.extend(dbt_history._log_problems(
        migrated,
        'change the table whose changes it has; erase_subject makes values of one key NULL',
    )) %}
    {% set type = migrated.types.get(column | lower, 'string') %}
    {% if not problems and '<' in type and value is not none %}
        {% do problems.append('column ' ~ column ~ ' is ' ~ type ~ ': only NULL can be set') %}
    {% endif %}
    {% if not problems %}
        {% set literal = dbt_history._migration_value(
            value, dbt_history._ddl_type(type), problems,
        ) %}
    {% endif %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set name = dbt_history._quote(migrated.names[column | lower]) %}
    {% set differs = name ~ ' is not null' if value is none
        else 'not (' ~ name ~ ' <=> ' ~ literal ~ ') and '
            ~ dbt_history._is_no_tombstone(migrated, caller) %}
    {% set rows = dbt_history._count_rows(migrated.relation, differs) %}
    {% if rows and not dry_run %}
        {% set statement = 'update ' ~ dbt_history._quoted_relation(migrated.relation) ~ ' set '
            ~ name ~ ' = ' ~ literal ~ ' where ' ~ differs %}
        {% set operation = {
            'operation': caller, 'column': column | lower, 'value': value | string,
            'is_null': value is none,
        } %}
        {% do dbt_history._run_migration(migrated, statement, operation, caller) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would change ' if dry_run else 'changes ') ~ column ~ ' in ' ~ rows ~ ' rows',
    ) %}
{% endmacro %}
