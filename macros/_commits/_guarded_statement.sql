{#
    Runs `statement` with session settings for this statement only, as one SQL script: they are
    reset to `before` whether it succeeds or fails (dbt has no `finally`, a SQL script has
    handlers).

    Returns none, or the class of the failure: 'conflict', 'refused' (a raise_error of this
    package), 'exists', 'constraint', 'gone' (a file no longer exists), 'too long' (a text for its
    column), 'no delta' (Spark cannot find the format), 'locked' (`delta.appendOnly`), 'error'. A
    script's handler cannot raise the caught error again, so the caller raises its own message.
#}
{% macro _guarded_statement(statement, settings, before) %}
    {% do dbt_history._refuse_shared_session() if settings %}
    {% set reset %}
        {%- for name in settings %}
            {%- if before.get(name) is none %}
        execute immediate {{ dbt_history._string_literal(
            'reset ' ~ dbt_history._key_of_setting(name)
        ) }};
            {%- else %}
        execute immediate {{ dbt_history._string_literal(dbt_history._set_sql(
            name, before[name],
        )) }};
            {%- endif %}
        {%- endfor %}
    {%- endset %}
    {% set classes = [
        ("sqlstate '2D521'", 'conflict'), ('user_raised_exception', 'refused'),
        ("sqlstate '42601'", 'exists'), ("sqlstate '23001'", 'constraint'),
        ("sqlstate '23502'", 'constraint'),
        ("sqlstate 'KD001'", 'gone'), ("sqlstate '22001'", 'too long'),
        ("sqlstate '54006'", 'too long'),
        ("sqlstate '42K02'", 'no delta'), ("sqlstate '56038'", 'no delta'),
        ("sqlstate '42809'", 'locked'),
        ('sqlexception', 'error'),
    ] %}
    {% set script %}
begin
    {%- for condition, name in classes %}
    declare exit handler for {{ condition }}
    begin
        {{- reset }}
        select '{{ name }}' as failed;
    end;
    {%- endfor %}
    {%- for name, value in settings.items() %}
    execute immediate {{ dbt_history._string_literal(dbt_history._set_sql(name, value)) }};
    {%- endfor %}
    {{ statement }};
    {{- reset }}
end
    {%- endset %}
    {% set result = run_query(script) %}
    {% do return(
        result.rows[0]['failed'] if result is not none and 'failed' in result.column_names else none
    ) %}
{% endmacro %}


{#
    Refuses a model in session mode with several threads. dbt-spark gives them one session, also
    with Spark Connect, so one model's commit would have the settings of another's:

        thread 1    set record, txnAppId of a -------- MERGE into a ----------- reset
        thread 2              set record, txnAppId of b -------- MERGE into b
                                                       ^ with the record of b

    A process that gives each thread a session of its own says so in the sessions
    (scripts/thread_sessions.py). A run-operation has one thread.
#}
{% macro _refuse_shared_session() %}
    {% set node = dbt_history._node_of_context() %}
    {% if not execute or node is none or target.threads | int < 2
        or adapter.config.credentials.method != 'session'
        or run_query('set spark.dbt_history.sessionOfThread').rows[0][1] == 'true' %}
        {% do return(none) %}
    {% endif %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        model.config.materialized, 'the threads of session mode share one Spark session, and models'
            ~ ' would commit with the settings of others; nothing was written',
        got='threads: ' ~ target.threads, expected='threads: 1', node=node,
        way_out='dbt <command> --threads 1, or threads: 1 in the profile; several threads need the'
            ~ ' method thrift or http',
    )) %}
{% endmacro %}


{#
    Runs an INSERT that depends on a maximum or count of the table that it writes, with these
    settings; returns what `_guarded_statement` returns. Delta would answer a maximum or count from
    file statistics, which is not recorded as a read of the table: two operations could then use the
    same number.
#}
{% macro _guarded_insert(insert, settings={}) %}
    {% set settings = dict(
        settings, **{'spark.databricks.delta.optimizeMetadataQuery.enabled': 'false'},
    ) %}
    {% do return(dbt_history._guarded_statement(
        insert, settings, dbt_history._session_settings(settings.keys() | list),
    )) %}
{% endmacro %}


{# Settings with which Spark interprets a statement, instead of compiling Java code for it. #}
{% macro _settings_of_interpretation() %}
    {% do return({
        'spark.sql.codegen.wholeStage': 'false', 'spark.sql.codegen.factoryMode': 'NO_CODEGEN',
    }) %}
{% endmacro %}


{# The session setting that adds a text to Delta's next commits. #}
{% macro _user_metadata() %}
    {% do return('spark.databricks.delta.commitInfo.userMetadata') %}
{% endmacro %}


{# The session setting that adds the property `dbt_history` to Iceberg's next snapshots. #}
{% macro _snapshot_property() %}
    {% do return('spark.sql.iceberg.snapshot-property.dbt_history') %}
{% endmacro %}


{#
    Settings with which Spark derives no conditions from those of a statement. From the rules of a
    batch it would derive them one from another, which takes minutes for some (decision 133).
#}
{% macro _settings_without_derived_conditions() %}
    {% do return({'spark.sql.constraintPropagation.enabled': 'false'}) %}
{% endmacro %}


{# Settings of a statement that applies a plan; a plan by the rules says how many rows it has. #}
{% macro _settings_of_rules(plan) %}
    {% do return(
        {} if plan.get('rows') is none else dbt_history._settings_without_derived_conditions()
    ) %}
{% endmacro %}


{# A key with a hyphen has to be quoted. #}
{% macro _key_of_setting(name) %}
    {% do return('`' ~ name ~ '`' if '-' in name else name) %}
{% endmacro %}


{# SET with any text as value: without quotes it would end at a semicolon or a line break. #}
{% macro _set_sql(name, value) %}
    {% do return(
        'set `' ~ name ~ '` = '
            ~ ('`' ~ (value | string).replace('`', '``') ~ '`' if value | string else '')
    ) %}
{% endmacro %}


{#
    A commit's record as the text of a setting. Spark substitutes ${...} in it, also in quotes, so
    the dollar sign is written as a JSON escape.
#}
{% macro _record_text(record) %}
    {% do return(tojson(record).replace('$', '\\u0024')) %}
{% endmacro %}


{#
    The current session settings for these keys: {key: value}, without those that are not set.
    Spark ends a script without calling its handler if an error has no error condition (a failed
    stage of a subquery); the settings that such a script left are reset here, before the next
    write. A setting of a commit that Spark masks is reset, too: if its masked value were set again,
    later commits would have that one.
#}
{% macro _session_settings(keys) %}
    {% set found = dict() %}
    {% for row in run_query('set').rows if row[0] in keys %}
        {% do found.update({row[0]: row[1]}) %}
    {% endfor %}
    {% for name in dbt_history._left_settings(found) %}
        {% do dbt_history._log_info(
            'commit', name,
            'is reset: Spark masks its value, which cannot be set again after this commit'
                ~ ' (docs/guides/writers.md)',
        ) if found[name] == dbt_history._masked() %}
        {% do run_query('reset ' ~ dbt_history._key_of_setting(name)) %}
        {% do found.pop(name) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The current values of all settings that the commits of a run set for their statements, and of
    those that `_advise_settings` looks at. It is read before a run creates or evaluates anything;
    a session in which `timestamp` means a time without a zone is refused.
#}
{% macro _settings_before_commits() %}
    {% set kind = 'spark.sql.timestampType' %}
    {% set found = dbt_history._session_settings(
        [
            kind,
            dbt_history._user_metadata(), dbt_history._snapshot_property(),
            'spark.databricks.delta.write.txnAppId', 'spark.databricks.delta.write.txnVersion',
            'spark.sql.legacy.storeAnalyzedPlanForView',
        ]
        + dbt_history._settings_of_interpretation().keys() | list
        + dbt_history._settings_without_derived_conditions().keys() | list
        + dbt_history._defaults_of_tasks().keys() | list
    ) %}
    {% if (found.get(kind) or '') | upper == 'TIMESTAMP_NTZ' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            model.config.materialized,
            'the session takes timestamp for a time without a zone; nothing was written',
            got=kind ~ ' = ' ~ found[kind], expected=kind ~ ' = TIMESTAMP_LTZ (the default)',
            node=model.unique_id,
            way_out='remove the setting from the profile or the cluster, and write timestamp_ntz'
                ~ ' where a column has no zone',
        )) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{#
    Of these settings, those that a failed statement of this package left, and those of a commit
    whose values are masked: nothing tells whose they are. The property of Iceberg's snapshots is
    the package's own.
#}
{% macro _left_settings(found) %}
    {% set app_id = 'spark.databricks.delta.write.txnAppId' %}
    {% set version = 'spark.databricks.delta.write.txnVersion' %}
    {% set left, masked = [], dbt_history._masked() %}
    {% for name, value in found.items() %}
        {% set is_record = name == dbt_history._snapshot_property()
            or name == dbt_history._user_metadata()
                and (value == masked or value.startswith('{') and '"dbt_history"' in value) %}
        {% set is_number = name in [app_id, version]
            and (found.get(app_id) or '').startswith(
                ('dbt_history:', 'dbt_history_watermarks:', masked)
            ) %}
        {% do left.append(name) if is_record or is_number %}
    {% endfor %}
    {% set for_speed = dict(
        dbt_history._settings_of_interpretation(),
        **dbt_history._settings_without_derived_conditions(),
    ) %}
    {% for name, value in for_speed.items() if left and found.get(name) == value %}
        {% do left.append(name) %}
    {% endfor %}
    {% do return(left) %}
{% endmacro %}
