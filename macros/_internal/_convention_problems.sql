{# What makes a convention unusable, as text. #}
{% macro _convention_problems(record) %}
    {% set problems = [] %}
    {% if not record['start'] or (not record['end'] and not record.get('append_only')) or record['start'] == record['end'] %}
        {% do problems.append('a convention needs a start column and another end column') %}
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
    {% if record['type'] == 'bigint' and record['open_end'] is not none and not modules.re.match('^-?[0-9]+$', record['open_end'] | string) %}
        {% do problems.append('open_end is ' ~ record['open_end']) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}
