{#
    The number of the last batch in the model's table, -1 if there is none. Use it in a
    history_batch model, so that a run does not read old batches again:

        where _batch > {{ dbt_history.last_batch() }}

    Without it the result is the same. It is a literal in the SQL, read from the table's log when
    the model is compiled.
#}
{% macro last_batch(relation=none) %}
    {% if not execute %}
        {% do return(-1) %}
    {% endif %}
    {% set table = load_relation(relation or this) %}
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

    Not behind hooks, which may write to the table. dbt keeps nothing from compiling to running a
    model but `graph`, which ends with the command.
#}
{% macro _own_log(table) %}
    {% set kept = graph.get('dbt_history_logs') or {} %}
    {% set of_model = invocation_id ~ ' ' ~ model.unique_id %}
    {% if model.get('compiled_code') %}
        {% set log = kept.pop(of_model, none) %}
        {% do return(log or dbt_history._commit_log(table, model.unique_id)) %}
    {% endif %}
    {% set log = dbt_history._commit_log(table, model.unique_id) %}
    {% if not pre_hooks %}
        {% do graph.update({'dbt_history_logs': dict(kept, **{of_model: log})}) %}
    {% endif %}
    {% do return(log) %}
{% endmacro %}
