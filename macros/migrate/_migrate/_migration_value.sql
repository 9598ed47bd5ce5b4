{#
    A value of a migration as SQL of the column's type: none is NULL, anything else is text (the
    text `NULL` is a string of four letters). Text that is not a value of the type is appended to
    `problems`; a cast alone would round a decimal, complete a time and cut a date:

        decimal(10,2)   1.239                   1.24
        timestamp       10:00                   today at 10:00
        date            2024-03-01 delivered    2024-03-01

    A time without a zone is UTC, whatever the session's zone.
#}
{% macro _migration_value(value, type, problems) %}
    {% if value is none %}
        {% do return('cast(null as ' ~ type ~ ')') %}
    {% endif %}
    {% set kind = type | trim | lower %}
    {% set text = (value | string | lower) if value is boolean else value | string %}
    {% set is_time = kind in ['date', 'timestamp', 'timestamp_ntz'] %}
    {% set is_point = not is_time
        or dbt_history._is_point(text, 'date' if kind == 'date' else 'timestamp') %}
    {% set literal = dbt_history._string_literal(
        dbt_history._time_text(text) if is_point and kind == 'timestamp' else text
    ) %}
    {% set cell = 'try_cast(' ~ literal ~ ' as ' ~ type ~ ')' %}
    {% set digits = modules.re.match('^decimal[(]([0-9]+), *([0-9]+)[)]$', kind) %}
    {% set number = modules.re.match(
        '[+-]?[0-9]*[.]?([0-9]*?)0*(?:e([+-]?[0-9]+))?$', text | trim | lower,
    ) %}
    {% set is_cut = digits and number
        and number.group(1) | length - (number.group(2) or 0) | int > digits.group(2) | int %}
    {% if not is_point or is_cut
        or run_query('select ' ~ cell ~ ' is null').rows[0][0] | string | lower == 'true' %}
        {% do problems.append('the value ' ~ value ~ ' is no ' ~ type) %}
    {% endif %}
    {% do return('cast(' ~ literal ~ ' as ' ~ type ~ ')') %}
{% endmacro %}


{#
    The instant of a migration as a literal, always a constant; `name` is the argument's name, for
    the message.
#}
{% macro _migration_instant(value, name, problems) %}
    {% set text = value | string | trim %}
    {% set form = '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?('
        ~ ' ?(Z|UTC|[+-][0-9]{2}:[0-9]{2}))?)?$' %}
    {% if value is none or not modules.re.match(form, text) %}
        {% do problems.append(
            name ~ ' is not a point in time: ' ~ value ~ ' (such as 2024-06-01T00:00:00Z)'
        ) %}
        {% do return('cast(null as timestamp)') %}
    {% endif %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set literal = dbt_history._literal(
        text if text | length > 10 else text ~ ' 00:00:00', convention,
    ) | trim %}
    {% if text[:4] == '0000' %}
        {% do problems.append(name ~ ' is in the year 0') %}
    {% elif text[:10] == '9999-12-31' %}
        {% do problems.append(name ~ ' is the open end') %}
    {% endif %}
    {% do return(literal) %}
{% endmacro %}
