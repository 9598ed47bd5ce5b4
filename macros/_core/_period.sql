{#
    A point in time as SQL. A number, a date, or text in the form of a date or time becomes a
    literal (UTC unless it names a zone); any other text is an SQL expression. A literal must be on
    the convention's axis; before dbt runs, the axis of a `ref` is not known.
#}
{% macro _instant(at, convention, caller_name) %}
    {% if convention.get('is_assumed') %}
        {% do return('cast(null as ' ~ convention.type ~ ')') %}
    {% endif %}
    {% set text = at | string | trim %}
    {% set clock = '[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?' %}
    {% set zone = '( ?(Z|UTC|GMT|[+-][0-9]{2}:[0-9]{2}|[A-Za-z_]+/[A-Za-z_/+0-9-]+))?' %}
    {% set is_number = modules.re.match('^-?[0-9]+$', text) is not none %}
    {% set day = '([0-9]{4}|[+-][0-9]{4,6})-[0-9]{2}-[0-9]{2}' %}
    {% set is_date = modules.re.match('^' ~ day ~ '$', text) is not none %}
    {% set is_time = modules.re.match('^' ~ day ~ clock ~ zone ~ '$', text) is not none %}
    {# As SQL, 2024-3-2 would be the number 2019. #}
    {% set is_almost = not is_date and not is_time and modules.re.match(
        '^([0-9]{4}-[0-9]{1,2}(-[0-9]{1,2}([ T].*)?)?|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4})$',
        text,
    ) is not none %}
    {% set fits = {
        'bigint': not is_date and not is_time,
        'date': not is_number and not is_time,
        'timestamp': not is_number,
    }[convention.type] %}
    {% if at is none or text == '' or is_almost or not fits %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'this is not a point on the axis of the history table',
            got=at,
            expected='a ' ~ convention.type ~ ' (literal, or an SQL expression)',
            node=dbt_history._node_of_context(),
            way_out='write a date as 2024-03-02, a time as 2024-03-02 10:00:00 (UTC unless it names'
                ~ ' a zone)' if is_almost else none,
        )) %}
    {% endif %}
    {% if convention.type == 'timestamp' and is_date %}
        {% do return(dbt_history._literal(text ~ ' 00:00:00', convention) | trim) %}
    {% elif is_number or is_date or is_time %}
        {% do return(dbt_history._literal(text, convention) | trim) %}
    {% endif %}
    {% do return('(' ~ text ~ ')') %}
{% endmacro %}


{#
    The first end that is open besides NULL: the convention's open end or, on an axis of times or
    days, the year 9999 if that is earlier, because files from other systems use 23:59:59, .999 and
    .999999. None on an axis of numbers without an open end.

        open_end                 the first end that is open
        none, 9999-12-31         9999-01-01
        2099-12-31 23:59:59      2099-12-31 23:59:59
#}
{% macro _first_open_end(convention) %}
    {%- set is_said = convention.open_end is not none -%}
    {%- if convention.type == 'bigint' -%}
        {%- do return(dbt_history._open_end(convention) if is_said else none) -%}
    {%- elif is_said and (convention.open_end | string)[:10] < '9999-01-01' -%}
        {%- do return(dbt_history._open_end(convention) | trim) -%}
    {%- endif -%}
    {%- do return(
        dbt_history._literal(
            '9999-01-01' if convention.type == 'date' else '9999-01-01 00:00:00', convention,
        ) | trim
    ) -%}
{% endmacro %}


{#
    True if the stored end is open: NULL, or `_first_open_end` or later. The active column is not
    read: tests and readers that must not trust it use this.
#}
{% macro _has_open_end(convention) %}
    {%- if not convention.end -%} {%- do return('true') -%} {%- endif -%}
    {%- set end = dbt_history._quote(convention.end) -%}
    {%- set first_open_end = dbt_history._first_open_end(convention) -%}
    {%- do return(
        '(' ~ end ~ ' is null'
            ~ (' or ' ~ end ~ ' >= ' ~ first_open_end if first_open_end is not none else '') ~ ')'
    ) -%}
{% endmacro %}


{#
    The first point after the period, NULL if it is open; derived from the end column alone. The
    greatest bigint is a common open end, to which no gap can be added.
#}
{% macro _end_of_period(convention, prefix='') %}
    {%- if not convention.end -%}
        {%- do return('cast(null as ' ~ convention.type ~ ')') -%}
    {%- endif -%}
    {%- set end = prefix ~ dbt_history._quote(convention.end) -%}
    {%- set until = dbt_history._shift_by_gap(end, convention, '+') -%}
    {%- set first_open_end = dbt_history._first_open_end(convention) -%}
    {%- if first_open_end is none -%}
        {%- do return(
            'try_add(' ~ end ~ ', ' ~ convention.gap ~ 'L)' if convention.gap else until
        ) -%}
    {%- endif -%}
    {%- do return('if(' ~ end ~ ' < ' ~ first_open_end ~ ', ' ~ until ~ ', null)') -%}
{% endmacro %}


{#
    CTEs `versions` and `neighbours`: each version with the earlier version of its key that ends
    last. Empty periods contain no instant and are left out.

        earlier  |----------------)
        version              |---------)      an overlap: earlier.until > start
        version                      |---)    a gap:      earlier.until < start
#}
{% macro _ctes_of_neighbours(model, key, convention) %}
{%- set keys = dbt_history._quoted(dbt_history._key_columns(key)) -%}
{%- set start = dbt_history._quote(convention.start) -%}
    history as (

        select * from {{ model }}

    ),

    versions as (

        select
            {{ keys | join(',\n            ') }},
            {{ start }},
            {{ dbt_history._end_column(convention) }},
            {{ dbt_history._quote(convention.version_id) }} as _version_id,
            {{ dbt_history._end_of_period(convention) }} as _until
        from history
        where {{ start }} is not null
            and not coalesce({{ start }} = {{ dbt_history._end_of_period(convention) }}, false)

    ),

    neighbours as (

        select
            *,
            max(
                named_struct(
                    'is_open', _until is null,
                    'until', _until,
                    'period_start', {{ start }},
                    'period_end', {{ dbt_history._quote(convention.end or '_end') }}
                )
            ) over (
                partition by {{ keys | join(', ') }}
                order by {{ start }}, _version_id, _until nulls last
                rows between unbounded preceding and 1 preceding
            ) as _earlier
        from versions

    )
{%- endmacro %}


{#
    Whether a stored row is a tombstone of `late_events`: a deletion that no version shows. Its
    period is closed and empty, and it has no values. `is_prefixed`: over prefixed columns.

        start = D, end = D - gap        D, the first instant at which the record is deleted
#}
{% macro _is_tombstone_row(columns, key, convention, is_prefixed=false) %}
    {%- set name_of = dbt_history._prefixed if is_prefixed else dbt_history._quote -%}
    {%- set terms = [
        name_of(convention.end) ~ ' = '
            ~ dbt_history._shift_by_gap(name_of(convention.start), convention)
    ] -%}
    {%- if convention.active -%} {%- do terms.append('not ' ~ name_of(convention.active)) -%}
    {%- endif -%}
    {%- for column in dbt_history._without(
        columns, key + dbt_history._period_columns(convention),
    ) -%}
        {%- do terms.append(name_of(column.name) ~ ' is null') -%}
    {%- endfor -%}
    {%- do return('coalesce(' ~ terms | join(' and ') ~ ', false)') -%}
{% endmacro %}


{# Key, start and end of a version, quoted: the first columns of every failing row. #}
{% macro _version_columns(key, convention) %}
    {%- do return(
        dbt_history._quoted(
            dbt_history._key_columns(key) + [convention.start]
                + ([convention.end] if convention.end else [])
        ) | join(',\n    ')
    ) -%}
{% endmacro %}


{# The end column; NULL as `_end` in an append-only table, which has none. #}
{% macro _end_column(convention) %}
    {%- do return(
        dbt_history._quote(convention.end) if convention.end
            else 'cast(null as ' ~ convention.type ~ ') as `_end`'
    ) -%}
{% endmacro %}


{#
    A literal of the convention's type. `value`: a number, a date, or a time as text (UTC unless it
    names a zone).
#}
{% macro _literal(value, convention) %}
    {%- if value is none -%} {%- do return('cast(null as ' ~ convention.type ~ ')') -%}
    {%- elif convention.type == 'bigint' -%} {%- do return((value | int) ~ 'L') -%}
    {%- elif convention.type == 'date' -%} {%- do return("date'" ~ value ~ "'") -%}
    {%- endif -%}
    {%- do return("timestamp'" ~ dbt_history._time_text(value) ~ "'") -%}
{% endmacro %}


{# The value of the end column of an open version. #}
{% macro _open_end(convention) %}
    {%- do return(dbt_history._literal(convention.open_end, convention)) -%}
{% endmacro %}


{#
    `expression` moved by one gap: `sign` is '-' or '+'. Spark moves by whole days of an interval in
    the calendar of the session's time zone, where a day may have 23 hours.
#}
{% macro _shift_by_gap(expression, convention, sign='-') %}
    {%- if not convention.gap -%} {%- do return(expression) -%}
    {%- elif convention.type == 'timestamp'
        and dbt_history._gap_units(convention) >= 86400000000 -%}
        {%- do return(
            'timestamp_micros(unix_micros(' ~ expression ~ ') ' ~ sign ~ ' '
                ~ dbt_history._gap_units(convention) ~ 'L)'
        ) -%}
    {%- elif convention.type == 'timestamp' -%}
        {%- do return('(' ~ expression ~ ' ' ~ sign ~ ' interval ' ~ convention.gap ~ ')') -%}
    {%- elif convention.type == 'date' -%}
        {%- do return(
            ('date_sub(' if sign == '-' else 'date_add(') ~ expression ~ ', '
                ~ (convention.gap | string).split(' ')[0] ~ ')'
        ) -%}
    {%- else -%} {%- do return('(' ~ expression ~ ' ' ~ sign ~ ' ' ~ convention.gap ~ 'L)') -%}
    {%- endif -%}
{% endmacro %}


{# True for a version that is still in force. #}
{% macro _is_open(convention) %}
    {%- set end = dbt_history._quote(convention.end) -%}
    {%- if convention.active -%}
        {%- do return('coalesce(' ~ dbt_history._quote(convention.active) ~ ', false)') -%}
    {%- elif convention.open_end is none -%} {%- do return('(' ~ end ~ ' is null)') -%}
    {%- else -%}
        {%- do return(
            '(' ~ end ~ ' is null or ' ~ end ~ ' >= ' ~ dbt_history._open_end(convention) ~ ')'
        ) -%}
    {%- endif -%}
{% endmacro %}


{# One gap as a number of the axis' units: microseconds, days or integers. #}
{% macro _gap_units(convention) %}
    {%- set words = (convention.gap | string).split(' ') -%}
    {%- if convention.type != 'timestamp' -%} {%- do return(words[0] | int) -%} {%- endif -%}
    {%- set micros = {
        'microsecond': 1, 'millisecond': 1000, 'second': 1000000, 'minute': 60000000,
        'hour': 3600000000, 'day': 86400000000,
    } -%}
    {%- do return((words[0] | int) * micros[(words[1] | default('microsecond')).rstrip('s')]) -%}
{% endmacro %}


{#
    A number of the axis (microseconds or days since 1970, or the integer itself) in the form that
    `_literal` accepts. Python's dates cover the years 1 to 9999, Spark's more: a point outside is
    moved by whole periods of 400 years, after which the calendar repeats.
#}
{% macro _axis_value(number, convention) %}
    {%- if convention.type == 'bigint' -%} {%- do return(number) -%} {%- endif -%}
    {%- set day, turn = 86400000000, 146097 -%}
    {%- set days, micros = (number, 0) if convention.type == 'date'
        else (number // day, number % day) -%}
    {#- From 0001-01-01 to 1970-01-01 there are 719162 days. -#}
    {%- set turns = 0 if -719162 <= days <= 2932896 else (days + 719162) // turn -%}
    {%- set moment = modules.datetime.datetime(1970, 1, 1)
        + modules.datetime.timedelta(days=days - turns * turn, microseconds=micros) -%}
    {%- set year = moment.year + 400 * turns -%}
    {%- set text = ('%04d' if 0 <= year <= 9999 else '%+05d') | format(year)
        ~ (moment | string)[4:] -%}
    {%- do return(text[:-9] if convention.type == 'date' else text) -%}
{% endmacro %}
