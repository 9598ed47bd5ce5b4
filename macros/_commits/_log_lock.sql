{#
    A log is locked by Delta's own property. Whatever has to change its rows opens it, and says so
    beside it: who finds that later knows that the run which opened the log was killed, and closes
    it.

    delta.appendOnly        true    false           true
    dbt_history.is_open     -       true            false
                            locked  open for us     locked again
#}
{% macro _open_log(name) %}
    {% do run_query(
        'alter table ' ~ name
            ~ " set tblproperties ('delta.appendOnly' = 'false', 'dbt_history.is_open' = 'true')"
    ) %}
{% endmacro %}


{% macro _close_log(name) %}
    {% do run_query(
        'alter table ' ~ name
            ~ " set tblproperties ('delta.appendOnly' = 'true', 'dbt_history.is_open' = 'false')"
    ) %}
{% endmacro %}


{# 'closed', 'open' (left so by a killed run), or none: the table has no lock. #}
{% macro _log_lock(name) %}
    {% set properties = {} %}
    {% for row in run_query('show tblproperties ' ~ name).rows %}
        {% do properties.update({row[0]: row[1]}) %}
    {% endfor %}
    {% if properties.get('delta.appendOnly') == 'true' %}
        {% do return('closed') %}
    {% endif %}
    {% do return('open' if properties.get('dbt_history.is_open') == 'true' else none) %}
{% endmacro %}
