{#
    At most one version of a key is open; with `at_least_one`, exactly one. A version is open
    according to its active column or, in a convention without one, its end. A failing row is a key,
    with the number of its open versions.
#}
{% test one_active_version(model, key=none, convention=none, at_least_one=false) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'one_active_version'),
) -%}
{%- set key = dbt_history._key_of(
    model, key, 'one_active_version', convention=convention,
) -%}
{%- set keys = dbt_history._quoted(key) -%}
{%- set start = dbt_history._quote(convention.start) -%}
with

history as (

    select * from {{ model }}

),

versions as (

    select
        {{ keys | join(',\n        ') }},
        {{ start }},
        {{ dbt_history._is_open(convention) if convention.active
            else dbt_history._has_open_end(convention) }} as _is_open
    from history

),

records as (

    select
        {{ keys | join(',\n        ') }},
        count_if(_is_open) as _open_versions,
        min(case when _is_open then {{ start }} end) as _first_open_start,
        max(case when _is_open then {{ start }} end) as _last_open_start
    from versions
    group by {{ keys | join(', ') }}

)

select * from records
where not ({{ '_open_versions = 1' if at_least_one else '_open_versions <= 1' }})
{% endtest %}
