{# SQL of a point on the convention's axis: literals, the open end, a distance of one gap. #}

{# A literal of the convention's type. `value`: a number, a date, or a time as text (UTC unless it names a zone). #}
{% macro _literal(value, conv) %}
    {%- if value is none -%} {%- do return('cast(null as ' ~ conv.type ~ ')') -%}
    {%- elif conv.type == 'bigint' -%} {%- do return((value | int) ~ 'L') -%}
    {%- elif conv.type == 'date' -%} {%- do return("date'" ~ value ~ "'") -%}
    {%- endif -%}
    {%- set text = value | string -%}
    {%- set clock = '' if ':' in text else ' 00:00:00' -%}
    {%- set zone = '' if modules.re.search('([zZ]|UTC|GMT|[+-][0-9]{1,2}:[0-9]{2}|[A-Za-z_]+/[A-Za-z_/+0-9-]+)$', text) else ' UTC' -%}
    {%- do return("timestamp'" ~ text ~ clock ~ zone ~ "'") -%}
{% endmacro %}


{# The value an open version has in its end column. #}
{% macro _open_end(conv) %}
    {%- do return(dbt_history._literal(conv.open_end, conv)) -%}
{% endmacro %}


{# `expression` moved by one gap: `sign` is '-' or '+'. #}
{% macro _shift_by_gap(expression, conv, sign='-') %}
    {%- if not conv.gap -%} {%- do return(expression) -%}
    {%- elif conv.type == 'timestamp' -%} {%- do return('(' ~ expression ~ ' ' ~ sign ~ ' interval ' ~ conv.gap ~ ')') -%}
    {%- elif conv.type == 'date' -%} {%- do return(('date_sub(' if sign == '-' else 'date_add(') ~ expression ~ ', ' ~ (conv.gap | string).split(' ')[0] ~ ')') -%}
    {%- else -%} {%- do return('(' ~ expression ~ ' ' ~ sign ~ ' ' ~ conv.gap ~ 'L)') -%}
    {%- endif -%}
{% endmacro %}


{# True for a version that is in force until further notice; `prefix` is a table alias with its dot, or ''. #}
{% macro _is_open(conv, prefix='') %}
    {%- set end = prefix ~ dbt_history._quote(conv.end) -%}
    {%- if conv.active -%} {%- do return('coalesce(' ~ prefix ~ dbt_history._quote(conv.active) ~ ', false)') -%}
    {%- elif conv.open_end is none -%} {%- do return('(' ~ end ~ ' is null)') -%}
    {%- else -%} {%- do return('(' ~ end ~ ' is null or ' ~ end ~ ' >= ' ~ dbt_history._open_end(conv) ~ ')') -%}
    {%- endif -%}
{% endmacro %}


{# A distance of one gap as a number of the axis' own units: microseconds, days or integers. #}
{% macro _gap_units(conv) %}
    {%- set words = (conv.gap | string).split(' ') -%}
    {%- if conv.type != 'timestamp' -%} {%- do return(words[0] | int) -%} {%- endif -%}
    {%- set micros = {
        'microsecond': 1, 'millisecond': 1000, 'second': 1000000, 'minute': 60000000, 'hour': 3600000000, 'day': 86400000000,
    } -%}
    {%- do return((words[0] | int) * micros[(words[1] | default('microsecond')).rstrip('s')]) -%}
{% endmacro %}


{#
    A number of the axis (microseconds or days since 1970, or the integer itself) as `_literal` takes it. Python's dates have the years
    1 to 9999, Spark's more: a point outside is moved by whole turns of the calendar, which repeats every 400 years.
#}
{% macro _axis_value(number, conv) %}
    {%- if conv.type == 'bigint' -%} {%- do return(number) -%} {%- endif -%}
    {%- set day, turn = 86400000000, 146097 -%}
    {%- set days, micros = (number, 0) if conv.type == 'date' else (number // day, number % day) -%}
    {#- 719162 days lie between the first day of year 1 and 1970. -#}
    {%- set turns = 0 if -719162 <= days <= 2932896 else (days + 719162) // turn -%}
    {%- set moment = modules.datetime.datetime(1970, 1, 1) + modules.datetime.timedelta(days=days - turns * turn, microseconds=micros) -%}
    {%- set year = moment.year + 400 * turns -%}
    {%- set text = ('%04d' if 0 <= year <= 9999 else '%+05d') | format(year) ~ (moment | string)[4:] -%}
    {%- do return(text[:-9] if conv.type == 'date' else text) -%}
{% endmacro %}
