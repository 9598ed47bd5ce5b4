{#
    The values of a column are first, first + 1, first + 2 … up to the greatest, without gaps. NULL
    means not numbered yet and is ignored. A value may occur in several rows. A failing row is a
    value with the preceding one.
#}
{% test is_gapless(model, column_name, first=1) %}
{%- set column = dbt_history._quote(column_name) -%}
with

numbers as (

    select distinct {{ column }} as _number
    from {{ model }}
    where {{ column }} is not null

),

neighbours as (

    select
        _number,
        coalesce(lag(_number) over (order by _number), {{ first }} - 1) as _number_before
    from numbers

)

select * from neighbours
where not (_number = _number_before + 1)
{% endtest %}
