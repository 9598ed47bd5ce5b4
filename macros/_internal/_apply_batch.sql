{#
    Applies one planned batch: one MERGE, one commit.
    Returns {'applied', 'added', 'closed', 'removed', 'skipped', 'reset'}; `applied` is false where another run was first, `reset` says what
    somebody did to the table, where all has to be planned again.
#}
{% macro _apply_batch(target, staged, columns, settings, plan, log, before, caller_name) %}
    {% do dbt_history._count_skipped(target, staged, columns, settings, plan) %}
    {% set place = dbt_history._writing_place(target) %}
    {% set failed = dbt_history._commit_once(
        target, dbt_history._merge_sql(place, staged, columns, settings, plan), plan, log, before, caller_name
    ) %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do dbt_history._raise_failed_merge(failed, plan, caller_name) %}
    {% endif %}
    {% set own = dbt_history._own_commit(target, plan, log) %}
    {% if own.reset and plan.batch is not none %}
        {% do return({'applied': false, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0, 'reset': own.reset}) %}
    {% endif %}
    {% set counts = dbt_history._applied_counts(own.metrics, plan, caller_name) %}
    {% if plan.batch is none %}
        {# A merge that changes nothing makes no commit, unless a number has to be kept. #}
        {% do counts.update({'applied': true}) %}
    {% endif %}
    {% if counts.applied and not (counts.added or counts.closed or counts.removed) %}
        {# Spark need not read the source where it finds no row to join: then its rows are not counted. #}
        {% do counts.update({'skipped': dbt_history._rows_without_base(target, staged, columns, settings, plan) | length}) %}
    {% endif %}
    {% do return(counts) %}
{% endmacro %}


{#
    txnAppId and txnVersion make the statement idempotent: Delta ignores a commit whose number is taken. A conflict with a reset is not tried
    again (`reset`): what was planned before it does not fit the table any more.
#}
{% macro _delta_commit_once(target, statement, plan, log, before) %}
    {% set state = namespace(failed='conflict', log=log) %}
    {% for attempt in range(6) if state.failed == 'conflict' %}
        {% if attempt %}
            {% set state.log = dbt_history._delta_commit_log(target, model.unique_id) %}
        {% endif %}
        {% set taken = state.log.last_batch %}
        {% if attempt and plan.batch is not none and dbt_history._reset_since(log, dbt_history._entries_since_log(target, log)) %}
            {% set state.failed = 'reset' %}
        {% elif attempt and plan.batch is not none and taken is not none and taken >= plan.batch %}
            {% set state.failed = none %}
        {% else %}
            {% set state.failed = dbt_history._guarded_statement(
                statement, dbt_history._commit_settings(plan, dict(state.log, seen=log.seen)), before,
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(state.failed) %}
{% endmacro %}


{# The commit's own record of the batch. #}
{% macro _commit_record(plan, log) %}
    {% set record = {
        'dbt_history': '1',
        'model': model.unique_id,
        'batch': plan.batch,
        'table_id': log.table_id,
        'epoch': log.epoch,
        'seen': (log.get('seen') or {}).get('version'),
        'staged_rows': plan.stages,
        'invocation_id': invocation_id,
    } %}
    {% do record.update(dbt_history._said_of_run()) %}
    {# How far the sources are read, committed with the rows that were read from them; a commit of other rows hands it on. #}
    {% for name in ['watermarks', 'about', 'key'] if plan.get(name) or log.get(name) %}
        {% do record.update({name: plan.get(name) or log.get(name)}) %}
    {% endfor %}
    {% do return(record) %}
{% endmacro %}


{# The record, and the pair that makes the commit happen once: of the plan, or the table's with the number of the batch. #}
{% macro _commit_settings(plan, log) %}
    {% set once = plan.get('once') or {'app_id': log.app_id, 'version': plan.batch} %}
    {% set settings = {'spark.databricks.delta.commitInfo.userMetadata': dbt_history._record_text(dbt_history._commit_record(plan, log))} %}
    {% if once.version is not none %}
        {% do settings.update({
            'spark.databricks.delta.write.txnAppId': once.app_id,
            'spark.databricks.delta.write.txnVersion': once.version | string,
        }) %}
    {% endif %}
    {% do return(settings) %}
{% endmacro %}


{#
    This run's commit of the batch: {'metrics', none where it made no commit; 'reset', what somebody did to the table since `log` was read}.
    If nothing, `log` has seen all that is there now.
#}
{% macro _own_commit(target, plan, log) %}
    {% set found = namespace(metrics=none, reset=none) %}
    {% set entries = dbt_history._history_entries(target, 10) if target.is_iceberg else dbt_history._entries_since_log(target, log) %}
    {% for entry in entries if found.metrics is none and entry.record is not none and (target.is_iceberg or entry.version > log.seen.version) %}
        {% if entry.record.get('invocation_id') == invocation_id and entry.record.get('batch') == plan.batch and entry.record.get('model') == model.unique_id %}
            {% set found.metrics = entry.metrics %}
        {% endif %}
    {% endfor %}
    {% if target.is_iceberg %}
        {% set found.reset = log.get('reset') %}
    {% else %}
        {% set found.reset = dbt_history._reset_since(log, entries) %}
        {% do log.update({'seen': {'version': entries[0].version, 'timestamp': entries[0].timestamp}}) if not found.reset %}
    {% endif %}
    {% do return({'metrics': found.metrics, 'reset': found.reset}) %}
{% endmacro %}


{# What the commit did, by its own metrics; a row of the source that is neither counted there nor a skip is an error. #}
{% macro _applied_counts(metrics, plan, caller_name) %}
    {% if metrics is none %}
        {% do return({'applied': false, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0}) %}
    {% endif %}
    {% set counts = {
        'applied': true,
        'added': metrics.numTargetRowsInserted | int,
        'closed': metrics.numTargetRowsUpdated | int,
        'removed': metrics.numTargetRowsDeleted | int,
    } %}
    {% set operations = counts.added + counts.closed + counts.removed %}
    {% set skipped = (metrics.numSourceRows | int) - operations if 'numSourceRows' in metrics else plan.get('skipped', 0) %}
    {% if skipped < 0 or skipped > plan.updates or counts.added > plan.updates + plan.upserts %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'batch ' ~ plan.batch ~ ' changed other numbers of rows than planned: restore the table to the version before it',
            got=metrics,
            expected='at most ' ~ plan.updates ~ ' skipped and ' ~ (plan.updates + plan.upserts) ~ ' added',
            node=model.unique_id,
        )) %}
    {% endif %}
    {% do counts.update({'skipped': skipped}) %}
    {% do return(counts) %}
{% endmacro %}


{% macro _raise_failed_merge(failed, plan, caller_name) %}
    {% set reasons = {
        'conflict': ['other writers changed the table six times while the batch was being merged', 'run the model again'],
        'refused': [
            'the rows to apply, or the table, changed between the plan and the merge',
            'run the model again; where the SELECT reads this model\'s own table, use dbt_history.last_batch() instead',
        ],
        'constraint': ['a constraint of the table refuses a row of the batch', 'mend the row, or the constraint (show tblproperties lists it)'],
        'too long': ['a text is longer than its column takes (varchar or char)', 'shorten the text in the SELECT'],
        'error': ['Spark could not finish the merge', 'the cause is in the log of the Spark driver; mend it and run the model again'],
    } %}
    {% set reason = reasons.get(failed, reasons['error']) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'batch ' ~ (plan.batch if plan.batch is not none else 'without a number') ~ ' was not applied: ' ~ reason[0],
        node=model.unique_id,
        way_out=reason[1],
    )) %}
{% endmacro %}
