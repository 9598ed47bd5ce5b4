{# What makes a convention unusable, as text. #}
{% macro _convention_problems(record, append_only=false) %}
    {% set problems = [] %}
    {% if not record['start'] or (not record['end'] and not record.get('append_only')) or record['start'] == record['end'] %}
        {% do problems.append('a convention needs a start column and another end column') %}
    {% endif %}
    {% for field in ['start', 'end', 'active', 'version_id'] if record[field] is not none and record[field] is not string %}
        {% do problems.append(field ~ ' is ' ~ tojson(record[field], record[field]) ~ ', which is no name of a column') %}
    {% endfor %}
    {% if append_only is not boolean %}
        {% do problems.append('append_only is ' ~ tojson(append_only, append_only) ~ ': true or false') %}
    {% endif %}
    {% if record['type'] not in ['timestamp', 'bigint', 'date'] %}
        {% do problems.append('type is ' ~ record['type']) %}
    {% endif %}
    {% set gaps = {
        'timestamp': '^(0|[0-9]+ (microsecond|millisecond|second|minute|hour|day)s?)$', 'bigint': '^[0-9]+$', 'date': '^[0-9]+( days?)?$',
    } %}
    {% if not modules.re.match(gaps.get(record['type'], '.'), record['gap'] | string) %}
        {% do problems.append('gap is ' ~ record['gap']) %}
    {% endif %}
    {% if record['open_end'] is not none and not dbt_history._is_point(record['open_end'] | string, record['type']) %}
        {% do problems.append('open_end is ' ~ record['open_end'] ~ ', which is no ' ~ record['type']) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{# Whether text is a value of this type of axis, as `_literal` writes it: a number of 64 bits; a day of the calendar, with a time and a zone or without. #}
{% macro _is_point(text, type) %}
    {% if type == 'bigint' %}
        {% do return(modules.re.match('^-?[0-9]{1,19}$', text) is not none and -9223372036854775808 <= text | int <= 9223372036854775807) %}
    {% endif %}
    {% set clock = '([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?)?( ?([zZ]|UTC|GMT|[+-][0-9]{1,2}:[0-9]{2}|[A-Za-z_]+/[A-Za-z_/+0-9-]+))?' %}
    {% set found = modules.re.match('^([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2})' ~ ('' if type == 'date' else clock) ~ '$', text) %}
    {% if found is none %}
        {% do return(false) %}
    {% endif %}
    {% set year = found.group(1) | int %}
    {% set is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) %}
    {% set days = [31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][found.group(2) | int - 1] %}
    {% do return(1 <= found.group(3) | int <= days) %}
{% endmacro %}
