{#
    The versions of a history table in force at one instant: at most one per key.

        |-- version 1 --)|-- version 2 --)
                     at  ^   version 2: the start is inside, the end outside

    Returns a sub-query for the FROM clause. Compiling runs no query, except to look up, where no
    convention is given, the key of a mirror or an event table, or the `dbt_valid_to_current` of a
    snapshot. Both columns are compared bare with a constant, so that Delta skips files that cannot
    contain the instant.
#}
{% macro as_of(relation, at, convention=none) %}
    {%- set reader = dbt_history._reader(relation, convention, 'as_of') -%}
    {%- set convention = reader.convention -%}
    {%- set point = dbt_history._point(at, reader, 'as_of') -%}
    {%- if reader.get('log') -%}
        {%- set log = reader.log -%}
        {%- do return(dbt_history._newest_rows(
            dbt_history._read_from(relation), log.key, log.order, log.begins,
            [log.time ~ ' <= ' ~ point]
        )) -%}
    {%- elif point is none -%}
        {%- do return(dbt_history._versions_where(
            reader, [dbt_history._is_open(convention) if convention.end else 'true'],
        )) -%}
    {%- endif -%}
    {%- do return(dbt_history._versions_where(reader, [
        dbt_history._starts_by(convention, point),
        dbt_history._lasts_beyond(convention, point),
        dbt_history._not_below_retention_horizon(reader, point, 'as_of', or_at_tag=true)
            if dbt_history._tag_of(at) is none else none,
    ])) -%}
{% endmacro %}
