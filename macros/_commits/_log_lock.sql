{#
    Delta's property `delta.appendOnly` locks a log. A macro that has to change its rows unlocks it
    and records that in a second property. If a later run finds the log open, the run that unlocked
    it was killed, and the later run locks it again.

    delta.appendOnly        true    false           true
    dbt_history.is_open     -       true            false
                            locked  open for us     locked again
#}
{% macro _open_log(name) %}
    {% do run_query(dbt_history._open_log_sql(name)) %}
{% endmacro %}


{% macro _open_log_sql(name) %}
    {% do return(
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
{% macro _log_lock(relation) %}
    {% set properties = dbt_history._table_properties(
        relation, ['delta.appendOnly', 'dbt_history.is_open'],
    ) %}
    {% if properties.get('delta.appendOnly') == 'true' %}
        {% do return('closed') %}
    {% endif %}
    {% do return('open' if properties.get('dbt_history.is_open') == 'true' else none) %}
{% endmacro %}
