{#
    The versions that were in force during the whole of [from_at, to_at): SQL's `contains`.

           [from_at -- to_at)
        |--------------------)    yes
           |-----------------)    yes
             |---------------)    no: begins later
        |---------------)         no: ends earlier
#}
{% macro contains(relation, from_at, to_at, convention=none) %}
    {%- set reader = dbt_history._reader(relation, convention, 'contains') -%}
    {%- set range = dbt_history._range(from_at, to_at, reader, 'contains') -%}
    {%- do return(dbt_history._versions_where(reader, [
        dbt_history._starts_by(reader.convention, range.from),
        dbt_history._lasts_beyond(reader.convention, range.to, or_ends_there=true),
        range.from ~ ' < ' ~ range.to,
        dbt_history._not_below_retention_horizon(reader, range.from, 'contains'),
    ])) -%}
{% endmacro %}
