{#
    The UUID of a state or a transaction as SQL text: a number, a day, a type and a database in 128
    bits.

        bits   32 id  16 id   4    12 id   2    10          4      5    3     40
               xxxxxxxx-xxxx-4xxx-         yyyy            -dddddddddddd
               id, highest   ver  lowest   variant 10,      day, type, database id
               48 bits       sion 12 bits  year - 2000, month

    A value out of its range is an error when the SQL runs; NULL in any of them gives NULL. The
    texts sort like the ids.
#}
{% macro uuid_of(object_id, date, type='feature', database_id=0) %}
    {%- set id = 'cast(' ~ object_id ~ ' as bigint)' -%}
    {%- set day = 'cast(' ~ date ~ ' as date)' -%}
    {%- set kind = {'transaction': '0', 'feature': '1'}.get(
        type | string, 'cast(' ~ type ~ ' as bigint)',
    ) -%}
    {%- set database = 'cast(' ~ database_id ~ ' as bigint)' -%}
    {%- set sql -%}
case
    when {{ id }} is null or {{ day }} is null or {{ kind }} is null or {{ database }} is null
        then cast(null as string)
    when {{ id }} not between 0 and 1152921504606846975
        then cast(raise_error('dbt_history.uuid_of: the object id is not in [0, 2^60)') as string)
    when year({{ day }}) not between 2000 and 3023
        then cast(raise_error('dbt_history.uuid_of: the year is not in [2000, 3023]') as string)
    when {{ kind }} not between 0 and 7
        then cast(raise_error('dbt_history.uuid_of: the type is not in [0, 7]') as string)
    when {{ database }} not between 0 and 1099511627775
        then cast(raise_error('dbt_history.uuid_of: the database id is not in [0, 2^40)') as string)
    else concat(
        substring(format_string('%012x', shiftright({{ id }}, 12)), 1, 8), '-',
        substring(format_string('%012x', shiftright({{ id }}, 12)), 9, 4), '-',
        '4', format_string('%03x', {{ id }} & 4095L), '-',
        format_string('%04x', 32768 | shiftleft(year({{ day }}) - 2000, 4) | month({{ day }})), '-',
        format_string(
            '%012x',
            shiftleft(cast(day({{ day }}) as bigint), 43) | shiftleft({{ kind }} + 0L, 40)
                | {{ database }}
        )
    )
end
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
