{#
    Runs the one statement of a migration that changes rows: one commit, with `operation` in its
    user metadata. `operation` identifies the migration: {'operation': name, …arguments}. `begins`:
    the instant at which its versions begin, SQL. With `or_failed` the class of a failure is
    returned, and is no error.
#}
{% macro _run_migration(
    migrated, statement, operation, caller_name, or_failed=false, begins=none
) %}
    {% set record = {'history_migration': operation, 'invocation_id': invocation_id} %}
    {% do record.update({'begun': dbt_history._begun_until(
        run_query('select unix_micros(' ~ begins ~ ')').rows[0][0] | int,
        dbt_history.convention('fivetran'),
    )}) if begins is not none %}
    {% do return(
        dbt_history._run_recorded(migrated, statement, record, caller_name, or_failed)
    ) %}
{% endmacro %}


{# Runs a statement as one commit with this record. #}
{% macro _run_recorded(migrated, statement, record, caller_name, or_failed=false) %}
    {% set failed = dbt_history._recorded_statement(migrated.relation, statement, record) %}
    {% if or_failed %}
        {% do return(failed) %}
    {% elif failed is not none %}
        {% set again = 'run the migration again' %}
        {% set reason = dbt_history._failure_reason(failed, 'statement', again, {
            'conflict': ['another writer changed the table at the same time', again],
            'refused': ['the table changed between look and write', again],
        }) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'no row was written: ' ~ reason[0], node=migrated.relation | string,
            way_out=reason[1],
        )) %}
    {% endif %}
{% endmacro %}


{#
    True if the table contains this migration: its commit is in the table's log, and no restore or
    overwrite after it removed its rows. After a RESTORE the search continues at the restored
    version. `is_kept`: a property tells it, too, if the commit has expired (`_keep_migration`).

        version   4          5         6          7         8
                  migration  batch 8   migration  batch 9   restore to 5
                                       '- undone            the first one is in the table

    A later migration that set the same column in the same versions replaced it, so that it is made
    again:

        version   4          5          6
                  add x, T   drop x, T  add x, T
                             '- until here version 4 is in the table: 6 sets the default again

    So does a drop or a rename: a column of the same name is another one then.

        version   4          5        6
                  add x, T   x -> y   add x, T
#}
{% macro _is_migrated(relation, operation, caller_name, is_kept=false) %}
    {% set walk = namespace(found=false, done=false, resume_at=none) %}
    {% for entry in dbt_history._delta_history_entries(relation) if not walk.done
        and (walk.resume_at is none or entry.version <= walk.resume_at) %}
        {% set earlier = dbt_history._said_by(entry).get('history_migration') %}
        {% if earlier is not none
            and tojson(earlier, sort_keys=true) == tojson(operation, sort_keys=true) %}
            {% set walk.found = true %}
            {% set walk.done = true %}
        {% elif earlier is not none and not is_kept
            and dbt_history._replaces_migration(earlier, operation) %}
            {% set walk.done = true %}
        {% elif operation.get('column') in dbt_history._moved_columns(entry) %}
            {% set walk.done = true %}
        {% elif entry.operation == 'RESTORE' %}
            {% set walk.resume_at = dbt_history._restored_version(entry) %}
        {% elif dbt_history._is_reset(entry) %}
            {% set walk.done = true %}
        {% endif %}
    {% endfor %}
    {% if is_kept and not walk.done %}
        {% set walk.found = dbt_history._table_property(
            relation, dbt_history._migration_property(operation),
        ) is not none %}
    {% endif %}
    {% if walk.found %}
        {% do dbt_history._log_info(caller_name, relation, 'was migrated before; nothing to do') %}
    {% endif %}
    {% do return(walk.found) %}
{% endmacro %}


{# The key that the table's batches record, after the rename; none if it does not change. #}
{% macro _renamed_key(relation, from_column, to_column) %}
    {% set known = dbt_history._find_last_batch(dbt_history._delta_history_entries(relation)).key %}
    {% set key = [] %}
    {% for name in known or [] %}
        {% do key.append(to_column if name | lower == from_column | lower else name) %}
    {% endfor %}
    {% do return(key if key != known else none) %}
{% endmacro %}


{# The columns that a commit dropped or renamed, and the new names, in small letters. #}
{% macro _moved_columns(entry) %}
    {% set paths = [] %}
    {% if entry.operation == 'RENAME COLUMN' %}
        {% do paths.extend([
            entry.parameters.get('oldColumnPath'), entry.parameters.get('newColumnPath'),
        ]) %}
    {% elif entry.operation == 'DROP COLUMNS' %}
        {% do paths.extend(fromjson(entry.parameters.get('columns') or '', [])) %}
    {% endif %}
    {% set names = [] %}
    {% for path in paths %}{% do names.append(dbt_history._top_name(path) | lower) %}{% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    Whether a later migration set the column of `operation` in the versions that it had set: from
    the same instant on, or in all rows.
#}
{% macro _replaces_migration(later, operation) %}
    {% do return(
        later is mapping and operation.get('column') is not none
        and later.get('column') == operation.column
        and later.get('at', operation.get('at')) == operation.get('at')
    ) %}
{% endmacro %}


{# The property that says of a table that it contains this migration. #}
{% macro _migration_property(operation) %}
    {% do return('dbt_history.migration.' ~ local_md5(tojson(operation, sort_keys=true))) %}
{% endmacro %}


{#
    Keeps a migration in a property of the table: the log's entries expire, properties do not, and a
    RESTORE restores them, too. It is needed where a repeat would overwrite later values. The value
    is the column, for `_forget_migrations`.
#}
{% macro _keep_migration(relation, operation) %}
    {% set name = dbt_history._migration_property(operation) %}
    {% if dbt_history._table_property(relation, name) is none %}
        {% do run_query(dbt_history._property_sql(relation, name, operation.column)) %}
    {% endif %}
{% endmacro %}


{#
    Before columns are dropped or renamed: removes the properties of their migrations, which are not
    those of a later column with the name. (`serve` drops columns itself, and does the same.)
#}
{% macro _forget_migrations(relation, columns) %}
    {% set wanted = columns | map('lower') | list %}
    {% set names = [] %}
    {% for name, column in dbt_history._table_properties(relation).items()
        if name.startswith('dbt_history.migration.') and column in wanted %}
        {% do names.append(dbt_history._string_literal(name)) %}
    {% endfor %}
    {% if names %}
        {% do run_query(
            'alter table ' ~ dbt_history._quoted_relation(relation) ~ ' unset tblproperties ('
                ~ names | join(', ') ~ ')'
        ) %}
    {% endif %}
{% endmacro %}
