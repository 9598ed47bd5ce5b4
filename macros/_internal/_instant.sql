{#
    A point in time as SQL. A number, a date and text that reads as one of them is a literal (UTC where it
    names no zone); any other text is an SQL expression. A literal must be on the convention's axis.
#}
{% macro _instant(at, conv, macro_name) %}
    {% set text = at | string | trim %}
    {% set clock = '[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?' %}
    {% set zone = '( ?(Z|UTC|[+-][0-9]{2}:[0-9]{2}))?' %}
    {% set is_number = modules.re.match('^-?[0-9]+$', text) is not none %}
    {% set day = '([0-9]{4}|[+-][0-9]{4,6})-[0-9]{2}-[0-9]{2}' %}
    {% set is_date = modules.re.match('^' ~ day ~ '$', text) is not none %}
    {% set is_time = modules.re.match('^' ~ day ~ clock ~ zone ~ '$', text) is not none %}
    {% set fits = {
        'bigint': not is_date and not is_time,
        'date': not is_number and not is_time,
        'timestamp': not is_number,
    }[conv.type] %}
    {% if at is none or text == '' or not fits %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            macro_name,
            'this is no point on the axis of the history table',
            got=at,
            expected='a ' ~ conv.type ~ ' (literal, or an SQL expression)',
        )) %}
    {% endif %}
    {% if conv.type == 'timestamp' and is_date %}
        {% do return(dbt_history._literal(text ~ ' 00:00:00', conv) | trim) %}
    {% elif is_number or is_date or is_time %}
        {% do return(dbt_history._literal(text, conv) | trim) %}
    {% endif %}
    {% do return('(' ~ text ~ ')') %}
{% endmacro %}
