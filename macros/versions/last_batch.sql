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
    {% set log = none if table is none or table.is_view or should_full_refresh()
        else dbt_history._commit_log(table, model.unique_id) %}
    {% set last = (log or {}).get('last_batch') %}
    {% if relation is none or relation | string == this | string %}
        {% do model.update({
            '_last_batch_read': {'app_id': (log or {}).get('app_id'), 'last_batch': last},
            '_last_batch_log': log,
        }) %}
    {% endif %}
    {% do return(last if last is not none else -1) %}
{% endmacro %}
