{#
    Applies one plan: one MERGE, one commit.
    Returns {'applied', 'added', 'closed', 'removed', 'skipped', 'reset'}; `applied` is false if
    another run was first; `reset` is how another writer reset the table, if the batch has to be
    planned again. Returns none if the batches of the plan have to be applied one by one.
#}
{% macro _apply_batch(batch) %}
    {% set target, plan, log = batch.target, batch.plan, batch.log %}
    {% do dbt_history._count_skipped(batch) %}
    {% do plan.update({'has_no_number': plan.batch is none}) %}
    {% set statement = dbt_history._merge_sql(dict(
        batch, place=dbt_history._writing_place(target),
    )) %}
    {% set failed = dbt_history._commit_once(
        target, statement, plan, log, batch.before, batch.caller_name,
    ) %}
    {% set added = dbt_history._columns_of_others(batch)
        if failed not in [none, 'reset', 'overtaken'] else [] %}
    {% if added and 'raw_code' in model %}
        {% do return(dict(
            dbt_history._counts_of_nothing(), reset='by a new column, ' ~ added | join(', '),
        )) %}
    {% endif %}
    {% if plan.parts and failed not in [none, 'reset', 'conflict'] %}
        {% do return(none) %}
    {% endif %}
    {# The SELECT of an operation (`rewind`) cannot be compiled again. #}
    {% if failed == 'overtaken' and 'raw_code' in model %}
        {% do return(dict(
            dbt_history._counts_of_nothing(), reset='another run applied a batch meanwhile',
        )) %}
    {% endif %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(batch.staged) %}
        {% do dbt_history._raise_failed_merge(failed, plan, batch.caller_name) %}
    {% endif %}
    {% set own = dbt_history._own_commit(target, plan, log) %}
    {% if own.reset and plan.batch is not none %}
        {% do return(dict(dbt_history._counts_of_nothing(), reset=own.reset)) %}
    {% endif %}
    {% set counts = dbt_history._applied_counts(
        own.metrics, plan, batch.settings, batch.caller_name,
    ) %}
    {% if plan.batch is none %}
        {# A merge without changes makes a commit only if the batch has a number. #}
        {% do counts.update({
            'applied': true, 'skipped': counts.skipped if counts.applied else none,
        }) %}
    {% endif %}
    {% if counts.applied and counts.skipped is none %}
        {# The rules, evaluated after the commit, skip the same rows. #}
        {% do counts.update({'skipped': dbt_history._count_without_base(batch)}) %}
    {% endif %}
    {% do return(counts) %}
{% endmacro %}


{#
    The columns that another writer has added to the table since the run read its columns. A MERGE
    that begins after that fails by a condition in it (`_from_affected_versions`), one that began
    before by a conflict, after which it is sent again and fails by the condition.
#}
{% macro _columns_of_others(batch) %}
    {% set known = batch.columns | map(attribute='name') | map('lower') | list %}
    {% do return(
        dbt_history._table_columns(batch.target) | map(attribute='name') | map('lower')
            | reject('in', known) | list
    ) %}
{% endmacro %}


{% macro _counts_of_nothing() %}
    {% do return({'applied': false, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0}) %}
{% endmacro %}


{#
    The counts of the commit, by its metrics; more changed or skipped rows than planned are an
    error.
#}
{% macro _applied_counts(metrics, plan, settings, caller_name) %}
    {% if metrics is none %}{% do return(dbt_history._counts_of_nothing()) %}{% endif %}
    {% set counts = {
        'applied': true,
        'added': metrics.numTargetRowsInserted | int,
        'closed': metrics.numTargetRowsUpdated | int,
        'removed': metrics.numTargetRowsDeleted | int,
    } %}
    {% set operations = counts.added + counts.closed + counts.removed %}
    {# Spark does not count the source if it finds first that no stored row can match. #}
    {% if 'numSourceRows' not in metrics %}
        {% set skipped = plan.get('skipped', 0) %}
    {% else %}
        {% set rows = (metrics.numSourceRows or 0) | int %}
        {% set skipped = rows - operations if operations and rows else none %}
    {% endif %}
    {# With late events a new version may hide a deletion, which adds a tombstone; and a delete. #}
    {% set most = plan.rows + plan.updates + plan.upserts if settings.late_events
        else plan.updates + plan.upserts %}
    {% if (skipped or 0) < 0 or (skipped or 0) > plan.updates or counts.added > most %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            dbt_history._plan_name(plan)
                ~ ' changed other numbers of rows than planned: restore the table to the version'
                ~ ' before it',
            got=metrics,
            expected='at most ' ~ plan.updates ~ ' skipped and ' ~ most ~ ' added',
            node=model.unique_id,
        )) %}
    {% endif %}
    {% do counts.update({'skipped': skipped}) %}
    {% do return(counts) %}
{% endmacro %}


{% macro _raise_failed_merge(failed, plan, caller_name) %}
    {% set reason = dbt_history._failure_reason(failed, 'merge', 'run the model again', {
        'overtaken': [
            'another run has applied a batch to the table since the rows were computed from it',
            'run it again: it begins after that batch',
        ],
        'refused': [
            'the rows to apply, or the table, changed between the plan and the merge',
            'run the model again; where the SELECT reads this model\'s own table, use'
                ~ ' dbt_history.last_batch() instead',
        ],
    }) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        dbt_history._plan_name(plan) ~ ' was not applied: ' ~ reason[0],
        node=model.unique_id,
        way_out=reason[1],
    )) %}
{% endmacro %}


{#
    Adds to the plan how many update rows find no base version. On Delta the metrics of the commit
    give this number; on Iceberg it is counted before the commit.
#}
{% macro _count_skipped(batch) %}
    {% if batch.target.is_iceberg and batch.plan.updates %}
        {% do batch.plan.update({'skipped': dbt_history._count_without_base(batch)}) %}
    {% endif %}
{% endmacro %}
