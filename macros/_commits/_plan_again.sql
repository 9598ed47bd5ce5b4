{#
    What makes a run safe against a RESTORE, TRUNCATE or CREATE OR REPLACE by somebody else while it
    writes. Delta commits a batch on whatever the table is then, so each commit says which version
    its run had seen, and the log is read again after it:

        version   5          6          7                   8         9
                  batch 3    truncate   batch 4, seen 5     undo      batch 1, seen 8
                                        '- misplaced        '- restore to 6, then all is planned
                                                            again

    A run that is killed after version 7 leaves a batch that the next one finds and undoes in the
    same way.
#}


{#
    Plans and writes, again where the table was reset meanwhile. `write` is the pipeline: it returns
    its result, with `reset`, what happened to the table, if it has to be done again. The model's
    SQL is compiled again, because its constants come from the log.
#}
{% macro _write_planned(write, target, existing, select_sql, settings, full_refresh, caller_name) %}
    {% set state = namespace(
        result=none, select_sql=dbt_history._with_last_batch(select_sql), existing=existing,
    ) %}
    {% for attempt in range(4) if state.result is none or state.result.get('reset') %}
        {% if attempt %}
            {% do dbt_history._log_info(
                caller_name, target,
                'was reset by another writer (' ~ state.result.reset
                    ~ ') during the run: planning again',
            ) %}
            {% set state.select_sql = dbt_history._compiled_again(
                state.result.reset, caller_name,
            ) %}
            {% set state.existing = target %}
        {% endif %}
        {% set state.result = write(
            target, state.existing, state.select_sql, settings, full_refresh, caller_name,
        ) %}
    {% endfor %}
    {% if state.result.get('reset') %}
        {% do dbt_history._refuse_reset(state.result.reset, caller_name) %}
    {% endif %}
    {% do return(state.result) %}
{% endmacro %}


{#
    A SELECT that filters by last_batch() is compiled here once more: what it asked the log when dbt
    compiled the model may be older than a reset. This time last_batch() leaves in `model` which log
    it has read, so that the pipeline can compare it with its own.
#}
{% macro _with_last_batch(select_sql) %}
    {% set asks = modules.re.search('last_batch\s*\(', model.get('raw_code') or '') is not none %}
    {% do return(render(model.raw_code) if asks and not model.get('extra_ctes') else select_sql) %}
{% endmacro %}


{#
    Whether last_batch() read the log before a reset that the pipeline's own look at the log has
    seen.
#}
{% macro _is_filtered_before_reset(log) %}
    {% set read = model.get('_last_batch_read') %}
    {% do return(read is not none and log is not none and read != log.app_id) %}
{% endmacro %}


{# Ephemeral models are put before the SQL by dbt itself, which cannot be done again here. #}
{% macro _compiled_again(reset, caller_name) %}
    {% if model.get('extra_ctes') %}
        {% do dbt_history._refuse_reset(reset, caller_name) %}
    {% endif %}
    {% do return(render(model.raw_code)) %}
{% endmacro %}


{% macro _refuse_reset(reset, caller_name) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'the table was reset by another writer while the run wrote to it; what the reset undid is'
            ~ ' not applied again yet',
        got=reset,
        expected='no RESTORE, TRUNCATE, overwrite or CREATE OR REPLACE of the table during a run',
        node=model.unique_id,
        way_out='run the model again: it applies the batches that are missing',
    )) %}
{% endmacro %}


{#
    The log of a table that is to be written, after a misplaced batch in it, if there is one, was
    undone.
#}
{% macro _log_to_write(relation, caller_name) %}
    {% set state = namespace(log=dbt_history._commit_log(relation, model.unique_id)) %}
    {% for attempt in range(5) if state.log.get('misplaced') %}
        {% set failed = dbt_history._undo_misplaced(relation, state.log, caller_name) %}
        {% if failed not in [none, 'conflict'] %}
            {% do dbt_history._refuse_misplaced(
                relation, state.log, 'it could not be undone (' ~ failed ~ ')', caller_name,
            ) %}
        {% endif %}
        {% set state.log = dbt_history._commit_log(relation, model.unique_id) %}
    {% endfor %}
    {% if state.log.get('misplaced') %}
        {% do dbt_history._refuse_misplaced(
            relation, state.log,
            'other writers changed the table five times while it was being undone', caller_name,
        ) %}
    {% endif %}
    {% do return(state.log) %}
{% endmacro %}


{#
    Restores the version before a misplaced batch. RESTORE commits only on the version it began
    with. It also puts the table's properties back, so a log is append-only again afterwards.
    Returns none, or the class of the failure.
#}
{% macro _undo_misplaced(relation, log, caller_name) %}
    {% set entry = log.misplaced %}
    {% for other in dbt_history._history_entries(relation)
        if other.version > entry.version and not dbt_history._goes_with_undo(other) %}
        {% do dbt_history._refuse_misplaced(
            relation, log, 'version ' ~ other.version ~ ' (' ~ other.operation ~ ') came after it',
            caller_name,
        ) %}
    {% endfor %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% set unlock = 'alter table ' ~ name
        ~ " set tblproperties ('delta.appendOnly' = 'false', 'dbt_history.is_open' = 'true');\n" %}
    {% set is_locked = dbt_history._table_property(relation, 'delta.appendOnly') == 'true' %}
    {% set record = {
        'dbt_history': '1', 'history_operation': 'undo', 'undone': entry.version,
        'invocation_id': invocation_id,
    } %}
    {% set setting = dbt_history._record_setting(relation, record) %}
    {% do dbt_history._log_info(
        caller_name, relation,
        'was reset before batch ' ~ entry.record.batch ~ ' was committed: undoing that batch',
    ) %}
    {# A script knows RESTORE only as text. #}
    {% set restore = 'execute immediate '
        ~ dbt_history._string_literal(
            'restore table ' ~ name ~ ' to version as of ' ~ (entry.version - 1)
        ) %}
    {% do return(dbt_history._guarded_statement(
        (unlock if is_locked else '') ~ restore, setting,
        dbt_history._session_settings(setting.keys() | list),
    )) %}
{% endmacro %}


{# Other misplaced batches, and commits that changed no row. #}
{% macro _goes_with_undo(entry) %}
    {% if entry.record is not none %}
        {% do return(
            entry.record.get('batch') is not none or entry.record.get('history_operation') == 'undo'
        ) %}
    {% endif %}
    {% do return(
        entry.operation in ['OPTIMIZE', 'VACUUM START', 'VACUUM END', 'SET TBLPROPERTIES']
    ) %}
{% endmacro %}


{% macro _refuse_misplaced(relation, log, problem, caller_name) %}
    {% set entry = log.misplaced %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'the table was reset while batch ' ~ entry.record.batch
            ~ ' was being written, and the batch has to be undone first; nothing was written',
        got='version ' ~ entry.version ~ ' is that batch; ' ~ problem, node=model.unique_id,
        way_out='restore table ' ~ dbt_history._quoted_relation(relation) ~ ' to version as of '
            ~ (entry.version - 1)
        ~ ', and run the model again: it applies the batches that are missing (later changes by'
            ~ ' others go with it: repeat them)',
    )) %}
{% endmacro %}


{#
    Whether the table has taken other rows of the sources than when the model was compiled: it was
    reset in between. A number that another run has committed since is not meant: there the rows
    are.
#}
{% macro _is_compiled_before_reset(captured, log) %}
    {% if captured is none or not captured.is_new or captured.number <= (log.last_batch or 0) %}
        {% do return(false) %}
    {% endif %}
    {% set moved = [] %}
    {% for source in captured.watermarks
        if captured.before.get(source) != (log.watermarks or {}).get(source) %}
        {% do moved.append(source) %}
    {% endfor %}
    {% do return(moved | length > 0) %}
{% endmacro %}
