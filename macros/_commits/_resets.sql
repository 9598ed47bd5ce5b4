{#
    How the table was reset since `log` was read, as text; none if it is the same table and was not
    reset.
#}
{% macro _reset_since(log, entries) %}
    {% set state = namespace(is_same=false, reset=none) %}
    {% for entry in entries if entry.version >= log.seen.version %}
        {% if entry.version == log.seen.version %}
            {% set state.is_same = entry.timestamp == log.seen.timestamp %}
        {% elif entry.operation == 'RESTORE' or dbt_history._is_reset(entry) %}
            {% set state.reset = entry.operation ~ ', version ' ~ entry.version %}
        {% endif %}
    {% endfor %}
    {% do return(state.reset if state.is_same or state.reset else 'dropped and created again') %}
{% endmacro %}


{# The commits from `log.seen` on, newest first. #}
{% macro _entries_since_log(target, log) %}
    {% set entries = dbt_history._history_entries(target, 10) %}
    {% if entries[-1].version > log.seen.version %}
        {% set entries = dbt_history._history_entries(target) %}
    {% endif %}
    {% do return(entries) %}
{% endmacro %}
