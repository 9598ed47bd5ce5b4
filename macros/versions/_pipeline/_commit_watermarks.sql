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
    {% set place = dbt_history._quoted_relation(dbt_history._writing_place(target)) %}
    {% set failed = dbt_history._commit_once(
        target, 'insert into ' ~ place ~ ' select * from ' ~ place ~ ' where 1 = 0', plan, log,
        before, caller_name
    ) %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do dbt_history._raise_failed_merge(failed, plan, caller_name) %}
    {% endif %}
{% endmacro %}
