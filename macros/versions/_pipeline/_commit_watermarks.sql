{#
    If the sources were read further than before but have no new rows, a commit without rows records
    the watermarks, so that the next run begins after them. It gets the number of the captured
    batch; if the SELECT numbers its rows itself, the number of the last batch (-1: none yet). Of
    two such commits that of the run that began last counts. (Without txnAppId Delta omits a commit
    without rows.) Nothing is committed if another run has committed since the SELECT was compiled:
    that run has read the sources, too.
#}
{% macro _commit_watermarks(target, staged, captured, log, before, caller_name) %}
    {% set is_numbered = '_batch' in staged.names %}
    {% if not captured.has_moved or captured.number != (log.last_batch or 0) + 1 %}
        {% do return(none) %}
    {% endif %}
    {% set last = log.last_batch if log.last_batch is not none else -1 %}
    {% set plan = {
        'batch': last if is_numbered else captured.number, 'once': none,
        'watermarks': captured.watermarks,
        'about': captured.about, 'stages': {},
    } %}
    {% if is_numbered %}
        {% set began = (run_started_at.timestamp() * 1000000) | int %}
        {% do plan.update({
            'once': {'app_id': 'dbt_history_watermarks:' ~ model.unique_id, 'version': began}
        }) %}
    {% endif %}
    {% do dbt_history._commit_no_rows(target, staged, plan, log, before, caller_name) %}
{% endmacro %}


{#
    The number of the batch that the SELECT is, if it says so by a note and the table does not have
    it; none otherwise. If it has no rows, a commit without rows records the number, so that the
    next run begins after it, and operations see that nothing is pending:

        log of writes    41     42         43         |  44
        feature_states   state  rejected   rejected   |  begins here
                                '- no rows: 43 is recorded
#}
{% macro _number_of_batch(select_sql, log) %}
    {% set numbers = dbt_history._notes('batch', select_sql) | map(attribute='number')
        | unique | list %}
    {% set last = (log or {}).get('last_batch') %}
    {% do return(
        numbers[0] if numbers | length == 1 and (last is none or numbers[0] > last) else none
    ) %}
{% endmacro %}


{% macro _commit_number(target, staged, number, settings, log, before, caller_name) %}
    {% do dbt_history._commit_no_rows(
        target, staged, {'batch': number, 'key': settings.key, 'stages': {}}, log, before,
        caller_name,
    ) %}
{% endmacro %}


{% macro _commit_no_rows(target, staged, plan, log, before, caller_name) %}
    {% set failed = dbt_history._commit_once(
        target, dbt_history._no_rows_sql(target), plan, log, before, caller_name,
    ) %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do dbt_history._raise_failed_merge(failed, plan, caller_name) %}
    {% endif %}
{% endmacro %}
