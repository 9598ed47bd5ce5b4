{#
    The periods of all versions of a table, for a program that evaluates `as_of` itself:
    {'from', 'type', 'since', 'until', 'is_open', 'key'}. `since` and `until` are numbers of the
    axis, `key` the key of a log (none: the caller knows it).

        stored    [ start ---------- end ] gap [ next start
        numbers   [ since ---------------------) until     end + gap; NULL if the end is NULL

    A version is in force at x if since <= x and (until is null or x < until): the conditions of
    `as_of`. `is_open` is for display: an open end has a number here if it is not NULL.
#}
{% macro _stored_periods(relation, convention) %}
    {%- set reader = dbt_history._reader(relation, convention, 'explore') -%}
    {%- set convention = reader.convention -%}
    {%- set start = dbt_history._quote(convention.start) -%}
    {%- set end = dbt_history._quote(convention.end) if convention.end else none -%}
    {%- if end is none -%}
        {%- set until, is_open = 'cast(null as bigint)', 'true' -%}
    {%- else -%}
        {#- The greatest bigint is a common open end: adding a gap to it must not fail. -#}
        {%- set until = 'try_add(' ~ end ~ ', ' ~ convention.gap ~ 'L)'
            if convention.type == 'bigint' and convention.gap
            else dbt_history._axis_number(
                dbt_history._shift_by_gap(end, convention, '+'), convention,
            ) -%}
        {%- set is_open = dbt_history._is_open(convention) ~ ' or '
            ~ dbt_history._has_open_end(convention) -%}
    {%- endif -%}
    {%- do return({
        'from': reader.from, 'type': convention.type,
        'since': dbt_history._axis_number(start, convention), 'until': until, 'is_open': is_open,
        'order': convention.get('version_id'),
        'time': reader.log.time if reader.get('log') else start,
        'key': reader.log.key if reader.get('log') else none,
    }) -%}
{% endmacro %}
