{#
    A version starts where the earlier ones of its key end.

        earlier  |--------)                  |------ version
                          |<---- gap ------->|

    With `allow_deletion_gaps` a gap that a deletion can have left is allowed: one of at least
    `minimum_gap`, or, without `minimum_gap`, one longer than one unit (the convention's gap; else 1
    millisecond, 1 day or 1). A shorter gap means that a version was closed one unit too early.
#}
{% test no_gap_between_versions(
    model, key=none, convention=none, allow_deletion_gaps=true, minimum_gap=none
) %}
{%- set convention = dbt_history.convention(
    dbt_history._convention_of(model, convention, 'no_gap_between_versions'),
) -%}
{%- set key = dbt_history._key_of(
    model, key, 'no_gap_between_versions', convention=convention,
) -%}
{%- set start = dbt_history._quote(convention.start) -%}
{#- Before dbt runs, the convention of the model is not known. #}
{%- if execute and minimum_gap is not none
    and not dbt_history._is_gap(minimum_gap, convention.type) -%}
    {%- do exceptions.raise_compiler_error(dbt_history._message(
        'no_gap_between_versions', 'this minimum_gap cannot be used', got=minimum_gap,
        expected='one number with one unit, microsecond to day, such as 1 hour or 36 hours'
            if convention.type == 'timestamp' else 'a number, such as 1',
    )) -%}
{%- endif -%}
{#- A gap of zero may be a text, too; every gap is as long. #}
{%- set minimum_gap = none if modules.re.match('^0+( |$)', minimum_gap | string)
    else minimum_gap -%}
{%- set unit = minimum_gap or convention.gap
    or ('1 millisecond' if convention.type == 'timestamp' else 1) -%}
with
{{ dbt_history._ctes_of_neighbours(model, key, convention) }},

gaps as (

    select * from neighbours
    where not _earlier.is_open and _earlier.until < {{ start }}

)

select
    {{ dbt_history._version_columns(key, convention) }},
    _earlier.period_start as _earlier_start,
    _earlier.period_end as _earlier_end
from gaps
{%- if allow_deletion_gaps %}
where not (
    {{ dbt_history._shift_by_gap(
        start, {'type': convention.type, 'gap': unit},
    ) }} {{ '>=' if minimum_gap else '>' }} _earlier.until
)
{%- endif %}
{% endtest %}
