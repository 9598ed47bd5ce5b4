{# The number of tasks of these settings where nobody has set them. #}
{% macro _defaults_of_tasks() %}
    {% do return({
        'spark.sql.shuffle.partitions': '200', 'spark.databricks.delta.snapshotPartitions': '50',
    }) %}
{% endmacro %}


{#
    Logs, once per invocation, the settings to write if a small table was written with the default
    number of tasks. `before`: the session's settings (`_session_settings`), among them those of
    `_defaults_of_tasks`. No warning of dbt, because `--warn-error` would fail the model.
#}
{% macro _advise_settings(before) %}
    {% set advice = dbt_history._advice_of_tasks(before) %}
    {# The nodes of an invocation share `graph`, and nothing else that a macro can write. #}
    {% if advice is not none and not graph.get('dbt_history_advised') %}
        {% do graph.update({'dbt_history_advised': true}) %}
        {% do log(advice, info=true) %}
    {% endif %}
{% endmacro %}


{# The text of the advice; none if both settings differ from the defaults. #}
{% macro _advice_of_tasks(before) %}
    {% set few = {
        'spark.sql.shuffle.partitions': '<number of cores>',
        'spark.databricks.delta.snapshotPartitions': '2',
    } %}
    {% set lines = [] %}
    {% for name, default in dbt_history._defaults_of_tasks().items()
        if (before.get(name) or default) | string == default %}
        {% do lines.append(
            '\n  write: ' ~ name ~ ': ' ~ few[name] ~ '  (it is ' ~ default ~ ', the default)'
        ) %}
    {% endfor %}
    {% do return(
        'dbt_history: writing a small table takes several times as long with the default number of'
            ~ ' tasks' ~ lines | join
        if lines else none
    ) %}
{% endmacro %}
