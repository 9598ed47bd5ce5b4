{#
    Applies one plan: one MERGE, one commit.
    Returns {'applied', 'added', 'closed', 'removed', 'skipped', 'reset'}; `applied` is false where
    another run was first, `reset` says what somebody did to the table, where all has to be planned
    again. None: the batches of a plan of several have to be applied one by one.
#}
{% macro _apply_batch(batch) %}
    {% set target, plan, log = batch.target, batch.plan, batch.log %}
    {% do dbt_history._count_skipped(batch) %}
    {% set statement = dbt_history._merge_sql(dict(
        batch, place=dbt_history._writing_place(target),
    )) %}
    {% set failed = dbt_history._commit_once(
        target, statement, plan, log, batch.before, batch.caller_name,
    ) %}
    {% if plan.parts and failed not in [none, 'reset', 'conflict'] %}
        {% do return(none) %}
    {% endif %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(batch.staged) %}
        {% do dbt_history._raise_failed_merge(failed, plan, batch.caller_name) %}
    {% endif %}
    {% set own = dbt_history._own_commit(target, plan, log) %}
    {% if own.reset and plan.batch is not none %}
        {% do return({
            'applied': false, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0,
            'reset': own.reset,
        }) %}
    {% endif %}
    {% set counts = dbt_history._applied_counts(own.metrics, plan, batch.caller_name) %}
    {% if plan.batch is none %}
        {# A merge that changes nothing makes no commit, unless a number has to be kept. #}
        {% do counts.update({
            'applied': true, 'skipped': counts.skipped if counts.applied else none,
        }) %}
    {% endif %}
    {% if counts.applied and counts.skipped is none %}
        {# The batch again would skip the same rows. #}
        {% do counts.update({'skipped': dbt_history._rows_without_base(batch) | length}) %}
    {% endif %}
    {% do return(counts) %}
{% endmacro %}


{#
    What the commit did, by its own metrics; a row of the source that is neither counted there nor a
    skip is an error.
#}
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
    {# Spark does not count the source where it finds first that no stored row can match. #}
    {% if 'numSourceRows' not in metrics %}
        {% set skipped = plan.get('skipped', 0) %}
    {% else %}
        {% set rows = (metrics.numSourceRows or 0) | int %}
        {% set skipped = rows - operations if operations and rows else none %}
    {% endif %}
    {% if (skipped or 0) < 0 or (skipped or 0) > plan.updates
        or counts.added > plan.updates + plan.upserts %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            dbt_history._plan_name(plan)
                ~ ' changed other numbers of rows than planned: restore the table to the version'
                ~ ' before it',
            got=metrics,
            expected='at most ' ~ plan.updates ~ ' skipped and ' ~ (plan.updates + plan.upserts)
                ~ ' added',
            node=model.unique_id,
        )) %}
    {% endif %}
    {% do counts.update({'skipped': skipped}) %}
    {% do return(counts) %}
{% endmacro %}


{% macro _raise_failed_merge(failed, plan, caller_name) %}
    {% set reasons = {
        'conflict': [
            'other writers changed the table six times while the batch was being merged',
            'run the model again',
        ],
        'refused': [
            'the rows to apply, or the table, changed between the plan and the merge',
            'run the model again; where the SELECT reads this model\'s own table, use'
                ~ ' dbt_history.last_batch() instead',
        ],
        'constraint': [
            'a constraint of the table refuses a row of the batch',
            'mend the row, or the constraint (show tblproperties lists it)',
        ],
        'too long': [
            'a text is longer than its column takes (varchar or char)',
            'shorten the text in the SELECT',
        ],
        'error': [
            'Spark could not finish the merge',
            'the cause is in the log of the Spark driver; mend it and run the model again',
        ],
    } %}
    {% set reason = reasons.get(failed, reasons['error']) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        dbt_history._plan_name(plan) ~ ' was not applied: ' ~ reason[0],
        node=model.unique_id,
        way_out=reason[1],
    )) %}
{% endmacro %}


{#
    How many update rows of a batch find no version: Delta counts them in the commit, elsewhere they
    are counted before it.
#}
{% macro _count_skipped(batch) %}
    {% if batch.target.is_iceberg and batch.plan.updates %}
        {% set sql %}
            with {{ dbt_history._resolved(batch) | indent(12) }}

            select count(*) from resolved where op = 'skip'
        {% endset %}
        {% do batch.plan.update({'skipped': run_query(sql).rows[0][0] | int}) %}
    {% endif %}
{% endmacro %}
