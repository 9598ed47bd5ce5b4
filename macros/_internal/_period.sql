{# Periods as they are stored, told without the active flag: for tests and readers that must not trust it. #}

{#
    True where the end says "until further notice". NULL, the convention's open end and, on a time axis,
    any end in the year 9999 or later: real files carry 23:59:59, .999 and .999999.
#}
{% macro _has_open_end(conv, prefix='') %}
    {%- set end = prefix ~ dbt_history._quote(conv.end) -%}
    {%- if conv.type == 'bigint' -%}
        {%- set least = none if conv.open_end is none else dbt_history._open_end(conv) -%}
    {%- else -%}
        {%- set least = dbt_history._literal('9999-01-01' if conv.type == 'date' else '9999-01-01 00:00:00', conv) | trim -%}
    {%- endif -%}
    {%- do return('(' ~ end ~ ' is null' ~ (' or ' ~ end ~ ' >= ' ~ least if least is not none else '') ~ ')') -%}
{% endmacro %}


{# The first instant after the stored period, NULL when it is open: [start, until). #}
{% macro _stored_until(conv, prefix='') %}
    {%- set end = prefix ~ dbt_history._quote(conv.end) -%}
    {%- do return(
        'case when not ' ~ dbt_history._has_open_end(conv, prefix)
        ~ ' then ' ~ dbt_history._shift_by_gap(end, conv, '+') ~ ' end'
    ) -%}
{% endmacro %}


{#
    CTEs `versions` and `neighbours`: each version beside the earlier version of its key that lasts longest.

        earlier  |----------------)
        version              |---------)      an overlap: earlier.until > start
        version                      |---)    a gap:      earlier.until < start
#}
{% macro _ctes_of_neighbours(model, key, conv) %}
{%- set keys = dbt_history._quoted(dbt_history._key_columns(key)) -%}
{%- set start = dbt_history._quote(conv.start) -%}
    history as (

        select * from {{ model }}

    ),

    versions as (

        select
            {{ keys | join(',\n            ') }},
            {{ start }},
            {{ dbt_history._quote(conv.end) }},
            {{ dbt_history._quote(conv.version_id) }} as _version_id,
            {{ dbt_history._stored_until(conv) }} as _until
        from history
        where {{ start }} is not null

    ),

    neighbours as (

        select
            *,
            max(
                named_struct(
                    'is_open', _until is null,
                    'until', _until,
                    'period_start', {{ start }},
                    'period_end', {{ dbt_history._quote(conv.end) }}
                )
            ) over (
                partition by {{ keys | join(', ') }}
                order by {{ start }}, _version_id, _until nulls last
                rows between unbounded preceding and 1 preceding
            ) as _earlier
        from versions

    )
{%- endmacro %}


{# Key, start and end of a version, quoted: what every failing row shows first. #}
{% macro _version_columns(key, conv) %}
    {%- do return(
        dbt_history._quoted(dbt_history._key_columns(key) + [conv.start, conv.end]) | join(',\n    ')
    ) -%}
{% endmacro %}


{# Column names, quoted. #}
{% macro _quoted(names) %}
    {%- set quoted = [] -%}
    {%- for name in names -%}{%- do quoted.append(dbt_history._quote(name)) -%}{%- endfor -%}
    {%- do return(quoted) -%}
{% endmacro %}
