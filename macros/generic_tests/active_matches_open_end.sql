{#
    A version is active exactly when its end is the open end. NULL is neither active nor inactive: it fails.
    Where the open end is a value, NULL is no end either.
#}
{% test active_matches_open_end(model, key, convention='fivetran') %}
{%- set conv = dbt_history.convention(convention) -%}
{%- if not conv.active -%}
    {%- do exceptions.raise_compiler_error(dbt_history._message(
        'active_matches_open_end',
        'this convention has no active column',
        got=conv.name,
        expected='a convention with one, such as fivetran, or a mapping with `active`',
        way_out='use period_is_well_formed and one_active_version',
    )) -%}
{%- endif -%}
{%- set active = dbt_history._quote(conv.active) -%}
with

history as (

    select * from {{ model }}

)

select
    {{ dbt_history._version_columns(key, conv) }},
    {{ active }}
from history
where not coalesce({{ active }} = {{ dbt_history._has_open_end(conv) }}, false)
{%- if conv.open_end is not none %}
    or {{ dbt_history._quote(conv.end) }} is null
{%- endif %}
{% endtest %}
