{#
    The versions that were in force at some instant of [from_at, to_at): SQL's `overlaps`.

        [from_at ------- to_at)
        |--)   |----)  |--------   yes
    |---)              no: ends where the range begins
                              |--  no: begins where it ends

    An empty version, or an empty range, overlaps nothing.
#}
{% macro overlaps(relation, from_at, to_at, convention=none) %}
    {%- do return(dbt_history._overlapping(relation, from_at, to_at, convention, 'overlaps')) -%}
{% endmacro %}


{% macro _overlapping(relation, from_at, to_at, convention, caller_name) %}
    {%- set reader = dbt_history._reader(relation, convention, caller_name) -%}
    {%- set range = dbt_history._range(from_at, to_at, reader, caller_name) -%}
    {%- do return(dbt_history._versions_where(reader, [
        dbt_history._starts_by(reader.convention, range.to, strictly=true),
        dbt_history._lasts_beyond(reader.convention, range.from),
        dbt_history._is_not_empty(reader.convention),
        range.from ~ ' < ' ~ range.to,
        dbt_history._not_below_retention_horizon(reader, range.from, caller_name),
    ])) -%}
{% endmacro %}


{# Both ends of a range as SQL. On an axis of numbers 'now' is not a point. #}
{% macro _range(from_at, to_at, reader, caller_name) %}
    {% set range = {
        'from': dbt_history._point(from_at, reader, caller_name),
        'to': dbt_history._point(to_at, reader, caller_name),
    } %}
    {% if range.from is none or range.to is none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, "'now' cannot bound a range on an axis of numbers",
            got=from_at ~ ', ' ~ to_at, expected='two numbers',
        )) %}
    {% endif %}
    {% do return(range) %}
{% endmacro %}
