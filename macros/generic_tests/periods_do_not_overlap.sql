{#
    At most one version of a key at any instant. Periods are half-open, [start, end + gap): a
    version may start where an earlier one ends. A failing row is a version that starts inside an
    earlier one.
#}
{% test periods_do_not_overlap(model, key=none, convention=none) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'periods_do_not_overlap'),
) -%}
{%- set key = dbt_history._key_of(
    model, key, 'periods_do_not_overlap', convention=convention,
) -%}
with
{{ dbt_history._ctes_of_neighbours(model, key, convention) }}

select
    {{ dbt_history._version_columns(key, convention) }},
    _earlier.period_start as _earlier_start,
    _earlier.period_end as _earlier_end
from neighbours
where _earlier is not null
    and not (not _earlier.is_open and _earlier.until <= {{ dbt_history._quote(convention.start) }})
{% endtest %}
