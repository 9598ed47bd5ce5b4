{#
    A version has a start and does not end before it: end >= start - gap, because a closed end is
    one gap before the next start and may therefore be up to one gap before its own start. An empty
    period (start = end where the gap is 0) is well formed, and a version that starts after the
    convention's open end is not. A NULL end is well formed only where the convention's open end is
    NULL: beside a maximum, readers return such a version as an open one, and other programs do not.
#}
{% test period_is_well_formed(model, key=none, convention=none) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'period_is_well_formed'),
) -%}
{%- set key = dbt_history._key_of(model, key, 'period_is_well_formed') -%}
{%- set start = dbt_history._quote(convention.start) -%}
{%- set end = dbt_history._quote(convention.end) -%}
with

history as (

    select * from {{ model }}

)

select
    {{ dbt_history._version_columns(key, convention) }}
from history
where {{ start }} is null
{%- if convention.end %}
    {#- Only an end before the start is compared with the start minus the gap: no overflow. #}
    or case when {{ end }} < {{ start }}
        then {{ end }} < {{ dbt_history._shift_by_gap(start, convention) }} else false end
{%- endif %}
{%- if convention.open_end is not none %}
    or {{ end }} is null
{%- endif %}
{% endtest %}
