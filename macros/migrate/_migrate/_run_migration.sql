{#
    Runs the one statement of a migration that changes rows: one commit, with `operation` in its
    user metadata. `operation` identifies the migration: {'operation': name, …arguments}.
#}
{% macro _run_migration(migrated, statement, operation, caller_name) %}
    {% set key = 'spark.databricks.delta.commitInfo.userMetadata' %}
    {% set record = {'history_migration': operation, 'invocation_id': invocation_id} %}
    {% set failed = dbt_history._guarded_statement(
        statement, {key: dbt_history._record_text(record)}, dbt_history._session_settings([key]),
    ) %}
    {% if failed is not none %}
        {% set reasons = {
            'conflict': [
                'another writer changed the table at the same time', 'run the migration again',
            ],
            'refused': ['the table changed between look and write', 'run the migration again'],
            'constraint': [
                'a constraint of the table refuses the new rows',
                'correct the constraint (show tblproperties lists it)',
            ],
        } %}
        {% set reason = reasons.get(
            failed,
            ['Spark could not finish the statement', 'the cause is in the log of the Spark driver'],
        ) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'no row was written: ' ~ reason[0], node=migrated.relation | string,
            way_out=reason[1],
        )) %}
    {% endif %}
{% endmacro %}


{#
    True if this migration is in the table's log and no restore or overwrite came after it:

        version   4          5         6          7
                  migration  batch 8   migration  batch 9      repeating either changes nothing
#}
{% macro _is_migrated(relation, operation, caller_name) %}
    {% set walk = namespace(found=false, done=false) %}
    {% for row in run_query('describe history ' ~ dbt_history._quoted_relation(relation)).rows
        if not walk.done %}
        {% set record = row['userMetadata'] %}
        {% set record = fromjson(record)
            if record is string and record.startswith('{') and 'history_migration' in record
            else none %}
        {% set entry = {
            'operation': row['operation'],
            'parameters': dbt_history._as_mapping(row['operationParameters']),
        } %}
        {% if record is mapping
            and tojson(
                record.history_migration, sort_keys=true,
            ) == tojson(operation, sort_keys=true) %}
            {% set walk.found = true %}
            {% set walk.done = true %}
        {% elif entry.operation == 'RESTORE' or dbt_history._is_reset(entry) %}
            {% set walk.done = true %}
        {% endif %}
    {% endfor %}
    {% if walk.found %}
        {% do dbt_history._log_info(caller_name, relation, 'was migrated before; nothing to do') %}
    {% endif %}
    {% do return(walk.found) %}
{% endmacro %}
