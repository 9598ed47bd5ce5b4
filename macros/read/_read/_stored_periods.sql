{#
    The periods of all versions of a table, for a program that evaluates `as_of` itself:
    {'from', 'type', 'since', 'until', 'is_open', 'key'}. `since` and `until` are numbers of the
    axis, `key` the key of a log (none: the caller knows it).

        stored    [ start ---------- end ] gap [ next start
        numbers   [ since ---------------------) until     end + gap; NULL if the end is open

    A version is in force at x if since <= x and (until is null or x < until): the conditions of
    `as_of`. `is_open` is for display: a version whose flag says so is open with any end.
#}
{% macro _stored_periods(relation, convention) %}
    {%- set reader = dbt_history._reader(relation, convention, 'explore') -%}
    {%- set convention = reader.convention -%}
    {%- set start = dbt_history._quote(convention.start) -%}
    {%- set is_open = dbt_history._is_open(convention) ~ ' or '
        ~ dbt_history._has_open_end(convention) if convention.end else 'true' -%}
    {%- do return({
        'from': reader.from, 'type': convention.type,
        'since': dbt_history._axis_number(start, convention),
        'until': dbt_history._axis_number(dbt_history._end_of_period(convention), convention),
        'is_open': is_open,
        'order': convention.get('version_id'),
        'time': reader.log.time if reader.get('log') else start,
        'key': reader.log.key if reader.get('log') else none,
    }) -%}
{% endmacro %}
