{# The relation that the statement of a batch reads and writes: on Iceberg a branch. #}
{% macro _writing_place(target) %}
    {% do return(dbt_history._iceberg_writing_place(target) if target.is_iceberg else target) %}
{% endmacro %}


{#
    Executes one statement as one commit with the record of `plan`. Of two concurrent runs one gets
    a conflict: it reads the log again, and either finds that the batch is applied or retries on the
    newer table. Returns none, or the class of the failure.
#}
{% macro _commit_once(target, statement, plan, log, before, caller_name) %}
    {% do return(
        dbt_history._iceberg_commit_once(target, statement, plan, log, before, caller_name)
            if target.is_iceberg
        else dbt_history._delta_commit_once(target, statement, plan, log, before)
    ) %}
{% endmacro %}


{# A statement without rows, for a commit that only records something. #}
{% macro _no_rows_sql(target) %}
    {% set place = dbt_history._quoted_relation(dbt_history._writing_place(target)) %}
    {% do return('insert into ' ~ place ~ ' select * from ' ~ place ~ ' where 1 = 0') %}
{% endmacro %}


{# After the last commit of a run. #}
{% macro _finish_writes(target, log) %}
    {% do dbt_history._iceberg_finish_writes(target, log) if target.is_iceberg %}
{% endmacro %}


{# The session setting that adds a record to the next commits. #}
{% macro _record_setting(relation, record) %}
    {% if relation.is_iceberg %}
        {% do return({
            dbt_history._snapshot_property(): dbt_history._record_text(dict(
                record, table=dbt_history._quoted_relation(relation),
            ))
        }) %}
    {% endif %}
    {% do return({dbt_history._user_metadata(): dbt_history._record_text(record)}) %}
{% endmacro %}


{#
    Runs one statement as one commit with `record`; the session's settings are restored. Returns
    none, or the class of the failure.
#}
{% macro _recorded_statement(relation, statement, record) %}
    {% set setting = dbt_history._record_setting(relation, record) %}
    {% do return(dbt_history._guarded_statement(
        statement, setting, dbt_history._session_settings(setting.keys() | list),
    )) %}
{% endmacro %}


{# Whether `suspend_history` was the last control of a table; `log`: its commit log, or none. #}
{% macro _is_suspended(log) %}
    {% do return(((log or {}).get('control') or {}).get('suspended', false)) %}
{% endmacro %}


{# The properties of a new version table (`is_log` false) or log; the model's own come last. #}
{% macro _properties_of_format(relation, columns, is_log) %}
    {% set properties = dbt_history._iceberg_properties() if relation.is_iceberg
        else dbt_history._delta_properties(columns, is_log) %}
    {% do properties.update(config.get('tblproperties') or {}) %}
    {% do return(properties) %}
{% endmacro %}


{# The comment of a table. #}
{% macro _table_comment(relation) %}
    {% if relation.is_iceberg %}
        {% do return(dbt_history._table_property(relation, 'comment')) %}
    {% endif %}
    {% do return(
        run_query(
            'describe detail ' ~ dbt_history._quoted_relation(relation)
        ).rows[0]['description']
    ) %}
{% endmacro %}


{# Problems of the SELECT's columns, as text: names that the table's format reserves. #}
{% macro _reserved_columns(staged, target) %}
    {% set problems = [] %}
    {% set reserved = [
        '_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id',
        '_last_updated_sequence_number',
    ] %}
    {% for column in staged.columns if target.is_iceberg and column.name | lower in reserved %}
        {% do problems.append(
            'column ' ~ column.name ~ ' has a name that Iceberg reserves'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Whether a MERGE evaluates its source more than once. It does for an Iceberg table without
    merge-on-read (Iceberg's default is copy-on-write; this package creates its tables with
    merge-on-read): Spark first uses the source to find the files to rewrite.
#}
{% macro _merge_reads_twice(target) %}
    {% if not target.is_iceberg or load_relation(target) is none %}
        {% do return(false) %}
    {% endif %}
    {% do return(dbt_history._table_property(target, 'write.merge.mode') != 'merge-on-read') %}
{% endmacro %}


{#
    This run's commit of the batch: {'metrics': none without a commit, 'reset': how another writer
    reset the table since `log` was read, or none}. Without a reset `log.seen` becomes the newest
    commit, and `log.unseen_control` what was suspended or resumed up to it.
#}
{% macro _own_commit(target, plan, log) %}
    {% set found = namespace(metrics=none, reset=none) %}
    {% set entries = dbt_history._history_entries(target, 10) if target.is_iceberg
        else dbt_history._entries_since_log(target, log) %}
    {% for entry in entries
        if found.metrics is none and entry.record is not none
            and (target.is_iceberg or entry.version > log.seen.version) %}
        {% if entry.record.get('invocation_id') == invocation_id
            and entry.record.get('batch') == plan.batch
            and entry.record.get('model') == model.unique_id %}
            {% set found.metrics = entry.metrics %}
        {% endif %}
    {% endfor %}
    {% if target.is_iceberg %}
        {% set found.reset = log.get('reset') %}
    {% else %}
        {% set found.reset = dbt_history._reset_since(log, entries, plan) %}
        {% if not found.reset %}
            {% for entry in entries | sort(attribute='version')
                if entry.version > log.seen.version and (entry.record or {}).get('control') %}
                {% do log.update({'unseen_control': entry.record.control}) %}
            {% endfor %}
            {% do log.update({
                'seen': {'version': entries[0].version, 'timestamp': entries[0].timestamp}
            }) %}
        {% endif %}
    {% endif %}
    {% do return({'metrics': found.metrics, 'reset': found.reset}) %}
{% endmacro %}
