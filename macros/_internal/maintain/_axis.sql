{# A point of the axis as a number: microseconds or days since 1970, or the integer itself. #}
{% macro _axis_number(expression, conv) %}
    {%- do return({'timestamp': 'unix_micros(', 'date': 'unix_date(', 'bigint': '('}[conv.type] ~ expression ~ ')') -%}
{% endmacro %}


{# A number of the axis as text that `_literal` takes and that a cast reads the same in every time zone. #}
{% macro _axis_text(number, conv) %}
    {%- if number is none -%} {%- do return(none) -%} {%- endif -%}
    {%- do return((dbt_history._axis_value(number | int, conv) | string) ~ (' UTC' if conv.type == 'timestamp' else '')) -%}
{% endmacro %}


{# `at` of an operation as text of the axis, evaluated now: a literal, an expression, `now`, a tag. None for the current version. #}
{% macro _evaluated_point(at, table, caller_name) %}
    {% set reader = {'conv': table.conv, 'table': table.relation} %}
    {% set point = dbt_history._point(at, reader, caller_name) if at is not none else none %}
    {% if point is none %}
        {% set point = dbt_history.current_version(table.relation, table.conv) %}
    {% endif %}
    {% do return(dbt_history._axis_text(
        run_query('select ' ~ dbt_history._axis_number(point, table.conv)).rows[0][0], table.conv
    )) %}
{% endmacro %}
