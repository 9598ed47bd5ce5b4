{#
    Renames a column, including its past values. Needs Delta's column mapping, which is enabled with
    a log message. A key column is also renamed in the key that the table's batches record:

        version   4                5                        6
                  batch 1, key a   a -> b, key b            batch 2, key b
                                   '- without it batch 2 would be refused

    Where the column is one of `track_columns` or `except`, the table's record of them is renamed,
    too; a repeat after a kill completes it.
#}
{% macro rename_column(table, from_column, to_column, dry_run=false) %}
    {% set caller = 'rename_column' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set problems = dbt_history._column_problems(migrated, from_column, [])
        + dbt_history._column_problems(migrated, to_column, []) %}
    {% if not problems %}
        {% set is_there = from_column | lower in migrated.types %}
        {% set is_taken = to_column | lower in migrated.types %}
        {% if not is_there and is_taken %}
            {% do dbt_history._rename_tracked_column(
                migrated.relation, from_column, to_column,
            ) if not dry_run %}
            {% do dbt_history._log_info(
                caller, migrated.relation,
                'has ' ~ to_column ~ ' and no ' ~ from_column ~ '; nothing to do',
            ) %}
            {% do return(none) %}
        {% elif not is_there %}
            {% do problems.append('the table has no column ' ~ from_column) %}
        {% elif is_taken %}
            {% do problems.append('the table has a column ' ~ to_column ~ ' already') %}
        {% endif %}
    {% endif %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% if not dry_run %}
        {% do dbt_history._switch_on(
            migrated.relation, 'delta.columnMapping.mode', 'name', 'column mapping', caller,
        ) %}
        {% do dbt_history._forget_migrations(migrated.relation, [from_column, to_column]) %}
        {% set statement = 'alter table ' ~ dbt_history._quoted_relation(migrated.relation)
            ~ ' rename column ' ~ dbt_history._quote(migrated.names[from_column | lower]) ~ ' to '
            ~ dbt_history._quote(to_column) %}
        {% set key = dbt_history._renamed_key(migrated.relation, from_column, to_column) %}
        {% if key %}
            {% do dbt_history._run_recorded(
                migrated, statement,
                {'dbt_history': '1', 'history_operation': caller, 'key': key}, caller,
            ) %}
        {% else %}
            {% do run_query(statement) %}
        {% endif %}
        {% do dbt_history._rename_tracked_column(migrated.relation, from_column, to_column) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would have ' if dry_run else 'has ') ~ from_column ~ ' as ' ~ to_column,
    ) %}
{% endmacro %}
