{#
    The number of the last batch in the model's table, -1 if there is none. Use it in a
    history_batch model, so that a run does not read old batches again:

        where _batch > {{ dbt_history.last_batch() }}

    Without it the result is the same. It is a literal in the SQL, read from the table's log when
    the model is compiled; in a unit test it is -1.
#}
{% macro last_batch(relation=none) %}
    {% if not execute or dbt_history._is_unit_test() %}
        {% do return(-1) %}
    {% endif %}
    {% set table = dbt_history._loaded(relation or this, 'last_batch') %}
    {% set is_own = relation is none or relation | string == this | string %}
    {% set log = none if table is none or table.is_view or should_full_refresh()
        else dbt_history._own_log(table) if is_own
        else dbt_history._commit_log(table, model.unique_id) %}
    {% set last = (log or {}).get('last_batch') %}
    {% if is_own %}
        {% do model.update({
            '_last_batch_read': {'app_id': (log or {}).get('app_id'), 'last_batch': last},
            '_last_batch_log': log,
        }) %}
    {% endif %}
    {% do return(last if last is not none else -1) %}
{% endmacro %}


{#
    The log of the model's table. dbt compiles a model and runs it at once, and its SQL is compiled
    once more in the run: the log that the first one has read serves the second, too.

        compiled     run: compiled again     plan        commit
        log read --- the same log ---------- the same -- compared with the log as it is then
#}
{% macro _own_log(table) %}
    {% if model.get('_log_when_compiled') is not none %}
        {% do return(model['_log_when_compiled']) %}
    {% endif %}
    {% set log = dbt_history._commit_log(table, model.unique_id) %}
    {% do graph.update({'dbt_history_logs': dict(
        graph.get('dbt_history_logs') or {}, **{invocation_id ~ ' ' ~ model.unique_id: log}
    )}) %}
    {% do return(log) %}
{% endmacro %}
