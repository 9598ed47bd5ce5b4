{# A point of the axis as a number: microseconds or days since 1970, or the integer itself. #}
{% macro _axis_number(expression, convention) %}
    {%- do return(
        {'timestamp': 'unix_micros(', 'date': 'unix_date(', 'bigint': '('}[convention.type]
            ~ expression ~ ')'
    ) -%}
{% endmacro %}


{# The day of a timestamp in UTC; a cast would give that of the session's time zone. #}
{% macro _utc_day(time) %}
    {%- do return('date_from_unix_date(cast(floor(unix_seconds(' ~ time ~ ') / 86400) as int))') -%}
{% endmacro %}


{#
    A number of the axis as text that `_literal` accepts and that a cast reads the same in every
    time zone.
#}
{% macro _axis_text(number, convention) %}
    {%- if number is none -%} {%- do return(none) -%} {%- endif -%}
    {%- do return(
        (dbt_history._axis_value(number | int, convention) | string)
            ~ (' UTC' if convention.type == 'timestamp' else '')
    ) -%}
{% endmacro %}
