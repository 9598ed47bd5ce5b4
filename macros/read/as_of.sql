{#
    The versions of a history table in force at one instant: at most one a key.

        |-- version 1 --)|-- version 2 --)
                     at  ^   version 2: the start is inside, the end outside

    Returns a sub-query to put after FROM. Plain SQL, nothing is asked while compiling. Both columns are
    compared bare with a constant, so that Delta skips the files that cannot hold the instant.
#}
{% macro as_of(relation, at, convention='fivetran') %}
    {% do return(adapter.dispatch('as_of', 'dbt_history')(relation, at, convention)) %}
{% endmacro %}


{% macro default__as_of(relation, at, convention) %}
    {%- set conv = dbt_history.convention(convention) -%}
    {%- set instant = dbt_history._instant(at, conv, 'as_of') -%}
    {%- set end = dbt_history._quote(conv.end) -%}
    {%- set sql -%}
(
    select * from {{ relation }}
    where {{ dbt_history._quote(conv.start) }} <= {{ instant }}
        and ({{ end }} > {{ dbt_history._shift_by_gap(instant, conv) }} or {{ end }} is null)
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
