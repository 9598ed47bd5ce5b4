{#
    Protects a run against a concurrent RESTORE, TRUNCATE or CREATE OR REPLACE by another writer,
    and captured changes against a `rewind` or a migration that would hide them (`_hides_changes`).
    Delta may commit a batch after such a reset, so each commit records the newest version when its
    run read the log (`seen`), and the log is read again after the commit:

        version   5          6          7                   8         9
                  batch 3    truncate   batch 4, seen 5     undo      batch 1, seen 8
                                        '- misplaced        '- restore to 6, then all is planned
                                                            again

    If a run is killed after version 7, the next run finds the misplaced batch and undoes it in the
    same way.
#}


{#
    Plans and writes; repeats both if the table was reset meanwhile. `write` is the pipeline: it
    returns its result, with `reset` (how the table was reset) if it has to be repeated. Then the
    model's SQL is compiled again, because its constants come from the log. `is_unmade`: the table
    was not made, or replaced, yet.
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
            {% if not state.result.get('is_unmade') %}
                {# dbt's cache lacks a table that another run has created meanwhile. #}
                {% do adapter.cache_added(target) %}
                {% set state.existing = target %}
            {% endif %}
            {% set state.select_sql = dbt_history._compiled_again(
                state.result.reset, caller_name,
            ) %}
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
    Compiles a SELECT that filters by last_batch() again: the table may have been reset after dbt
    compiled the model. `model` gets the log that last_batch() read, so that the pipeline can
    compare it with its own, also where a macro asks last_batch() and the SELECT is not compiled
    again. Pre-hooks may write to the table, so behind them the log is read anew.
#}
{% macro _with_last_batch(select_sql) %}
    {% set log = dbt_history._log_when_compiled() %}
    {% if log is not none %}
        {% do model.update({
            '_last_batch_read': {'app_id': log.app_id, 'last_batch': log.last_batch},
        }) %}
        {% if not pre_hooks %}
            {% do model.update({'_log_when_compiled': log, '_last_batch_log': log}) %}
        {% endif %}
    {% endif %}
    {% set asks = modules.re.search('last_batch\\s*\\(', model.get('raw_code') or '') is not none %}
    {% do return(render(model.raw_code) if asks and not model.get('extra_ctes') else select_sql) %}
{% endmacro %}


{#
    The log that last_batch() has read, or a macro that asks it, when dbt compiled the model. dbt
    keeps nothing from compiling to running a model but `graph`, which ends with the command.
#}
{% macro _log_when_compiled() %}
    {% do return(
        (graph.get('dbt_history_logs') or {}).get(invocation_id ~ ' ' ~ model.unique_id)
    ) %}
{% endmacro %}


{#
    Whether the table was reset between last_batch()'s reading of the log and the pipeline's.
#}
{% macro _is_filtered_before_reset(log) %}
    {% set read = model.get('_last_batch_read') or {} %}
    {% do return(
        log is not none and (
            (read.get('app_id') is not none and read.app_id != log.app_id)
            or dbt_history._is_set_back(read.get('last_batch'), log)
        )
    ) %}
{% endmacro %}


{#
    Whether another run committed between last_batch()'s reading of the log and the pipeline's. All
    rows of `feature_outcomes` have the number of the last transaction, so the number does not tell
    which of them the other run appended.
#}
{% macro _is_filtered_before_batch(log) %}
    {% set read = model.get('_last_batch_read') %}
    {% do return(read is not none and read.last_batch != log.last_batch) %}
{% endmacro %}


{#
    Whether another run committed since a SELECT was compiled whose rows depend on the last batch,
    which its note names. `feature_states` folds the writes over the states as of then, and the
    batch of the other run may have removed them (keep_states, history off). If that batch includes
    all the writes, no row is applied anyway:

        txn          41             42              43
        states       [ f v1 -------)[ f v2 ---
        other run                   batch 42: f v1 is removed
        this run     compiled       evaluated after 41: without f v1 the update 43 finds no f
#}
{% macro _is_compiled_before_batch(select_sql, log) %}
    {% set last = log.last_batch if log.last_batch is not none else -1 %}
    {% set outdated = [] %}
    {% for note in dbt_history._notes('batch', select_sql)
        if note.after != last and note.number > last %}
        {% do outdated.append(note) %}
    {% endfor %}
    {% do return(outdated != []) %}
{% endmacro %}


{#
    How the table was changed after the SELECT was compiled, so that the run has to be planned
    again; none if the SELECT is up to date. A reset outdates every SELECT. Whether a commit of
    another run does depends on the pipeline: `is_overtaken`, by `what` that run committed.
#}
{% macro _outdated(captured, log, is_overtaken, what) %}
    {% if dbt_history._is_compiled_before_reset(captured, log)
        or dbt_history._is_filtered_before_reset(log) %}
        {% do return('since the model was compiled') %}
    {% endif %}
    {% do return('by ' ~ what ~ ' of another run' if is_overtaken else none) %}
{% endmacro %}


{# The result of a pipeline that has to be repeated (`_write_planned`); drops what was staged. #}
{% macro _to_plan_again(staged, reset, is_unmade=false) %}
    {% do dbt_history._drop_staged(staged) %}
    {% do return({'reset': reset, 'is_unmade': is_unmade}) %}
{% endmacro %}


{# dbt itself adds the CTEs of ephemeral models, which cannot be repeated here. #}
{% macro _compiled_again(reset, caller_name) %}
    {% if model.get('extra_ctes') %}
        {% do dbt_history._refuse_reset(reset, caller_name) %}
    {% endif %}
    {# What it notes is of the table before the reset. #}
    {% do model.update({'compiled_code': none, '_log_when_compiled': none}) %}
    {% do return(render(model.raw_code)) %}
{% endmacro %}


{% macro _refuse_reset(reset, caller_name) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'the table was reset by another writer while the run wrote to it; the batches that the'
            ~ ' reset undid are not applied again yet',
        got=reset,
        expected='no RESTORE, TRUNCATE, overwrite, CREATE OR REPLACE, rewind or migration of the'
            ~ ' table during a run',
        node=model.unique_id,
        way_out='run the model again: it applies the missing batches',
    )) %}
{% endmacro %}


{#
    The log of a table to write. A misplaced batch in it is undone first: then `is_undone` is true.
    `log`: one that was read in this attempt already.
#}
{% macro _log_to_write(relation, caller_name, log=none) %}
    {% set state = namespace(log=log or dbt_history._commit_log(relation, model.unique_id)) %}
    {% for attempt in range(5) if state.log.get('misplaced') %}
        {% set failed = dbt_history._undo_misplaced(relation, state.log, caller_name) %}
        {# 'locked': another run has locked the log again since it was opened. #}
        {% if failed not in [none, 'conflict', 'locked'] %}
            {% do dbt_history._refuse_misplaced(
                relation, state.log, 'it could not be undone (' ~ failed ~ ')', caller_name,
            ) %}
        {% endif %}
        {% set state.log = dict(
            dbt_history._commit_log(relation, model.unique_id), is_undone=true,
        ) %}
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
    Restores the version before a misplaced batch. RESTORE fails if another commit was made since it
    began. It also restores the table's properties, so a log is append-only again afterwards.
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
    {% set is_locked = dbt_history._table_property(relation, 'delta.appendOnly') == 'true' %}
    {% set record = {
        'dbt_history': '1', 'history_operation': 'undo', 'undone': entry.version,
        'invocation_id': invocation_id,
    } %}
    {% do dbt_history._log_info(
        caller_name, relation,
        'was reset before batch ' ~ entry.record.batch ~ ' was committed: undoing that batch',
    ) %}
    {# In a SQL script RESTORE works only by EXECUTE IMMEDIATE. #}
    {% set restore = 'execute immediate '
        ~ dbt_history._string_literal(
            'restore table ' ~ name ~ ' to version as of ' ~ (entry.version - 1)
        ) %}
    {% do return(dbt_history._recorded_statement(
        relation, (dbt_history._open_log_sql(name) ~ ';\n' if is_locked else '') ~ restore, record,
    )) %}
{% endmacro %}


{#
    Whether a RESTORE that undoes a misplaced batch may also undo this commit: it may if the commit
    is a batch or an undo of this package, or changed neither rows nor columns.
#}
{% macro _goes_with_undo(entry) %}
    {% if entry.record is not none %}
        {% do return(
            entry.record.get('batch') is not none or entry.record.get('history_operation') == 'undo'
        ) %}
    {% endif %}
    {% do return(entry.operation in dbt_history._operations_without_change()) %}
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
        ~ ', and run the model again: it applies the missing batches (the restore also undoes later'
            ~ ' changes by others: repeat them)',
    )) %}
{% endmacro %}


{#
    Whether the table's watermarks differ from those that the model was compiled with, because the
    table was reset in between. If another run has committed the captured number since, this is not
    the case: its rows are in the table. If a misplaced batch was undone since, the SELECT may
    depend on its rows: on the last id of a mirror, or on a known state. An operation that the
    model did not know when it was compiled may hide the captured rows (`_hides_changes`).

        version   10       11                12                    13
        ids       to 20    restored: to 15   misplaced: 21 to 25   undone: to 15
                                                '- compiled: the next id is 26, not 16
#}
{% macro _is_compiled_before_reset(captured, log) %}
    {% if captured is not none and captured.is_new and log.get('is_undone') %}
        {% do return(true) %}
    {% elif captured is none or not captured.is_new or captured.number <= (log.last_batch or 0) %}
        {% do return(false) %}
    {% endif %}
    {% if captured.get('begun', []) | reject('equalto', log.get('begun')) | list %}
        {% do return(true) %}
    {% endif %}
    {% set moved = [] %}
    {# A source that was renamed is recorded under its former name until the commit. #}
    {% for source in dict(captured.watermarks, **captured.before)
        if captured.before.get(source) != (log.watermarks or {}).get(source) %}
        {% do moved.append(source) %}
    {% endfor %}
    {% do return(moved | length > 0) %}
{% endmacro %}
