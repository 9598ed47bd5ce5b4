{#
    A version has a start and does not end before it: start <= end + gap, because a closed end is
    one gap before the next start and may therefore be up to one gap before its own start. An empty
    period (start = end where the gap is 0) is well formed. A NULL end is well formed only where the
    convention's open end is NULL: beside a maximum, readers return such a version as an open one,
    and other programs do not.
#}
{% test period_is_well_formed(model, key=none, convention=none) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'period_is_well_formed'),
) -%}
{%- set key = dbt_history._key_of(model, key, 'period_is_well_formed') -%}
{%- set start = dbt_history._quote(convention.start) -%}
with

history as (

    select * from {{ model }}

),

periods as (

    select
        *,
        {{ dbt_history._stored_until(convention) }} as _until
    from history

)

select
    {{ dbt_history._version_columns(key, convention) }}
from periods
where {{ start }} is null
    or not coalesce({{ start }} <= _until, true)
{%- if convention.open_end is not none %}
    or {{ dbt_history._quote(convention.end) }} is null
{%- endif %}
{% endtest %}
