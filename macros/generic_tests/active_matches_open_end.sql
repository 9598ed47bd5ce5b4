{#
    A version is active if and only if its end is the open end. NULL is neither active nor inactive,
    so it fails. If the open end is a value, a NULL end fails too.
#}
{% test active_matches_open_end(model, key=none, convention=none) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'active_matches_open_end'),
) -%}
{%- set key = dbt_history._key_of(model, key, 'active_matches_open_end') -%}
{%- if not convention.active -%}
    {%- do exceptions.raise_compiler_error(dbt_history._message(
        'active_matches_open_end',
        'this convention has no active column',
        got=convention.name,
        expected='a convention with one, such as fivetran, or a mapping with `active`',
        way_out='use period_is_well_formed and one_active_version',
    )) -%}
{%- endif -%}
{%- set active = dbt_history._quote(convention.active) -%}
with

history as (

    select * from {{ model }}

)

select
    {{ dbt_history._version_columns(key, convention) }},
    {{ active }}
from history
where not coalesce({{ active }} = {{ dbt_history._has_open_end(convention) }}, false)
{%- if convention.open_end is not none %}
    or {{ dbt_history._quote(convention.end) }} is null
{%- endif %}
{% endtest %}
