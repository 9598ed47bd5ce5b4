{#
    The versions that had ended at an instant: SQL's `precedes`.

                        at
        |------)         ^    yes
        |----------------)    yes: the end is outside the period
        |-----------------    no
#}
{% macro precedes(relation, at, convention=none) %}
    {%- set reader = dbt_history._reader(relation, convention, 'precedes') -%}
    {%- set range = dbt_history._range(at, at, reader, 'precedes') -%}
    {%- do return(dbt_history._versions_where(reader, [
        dbt_history._ended_by(reader.convention, range.to),
        dbt_history._is_not_empty(reader.convention),
        dbt_history._not_below_retention_horizon(reader, none, 'precedes'),
    ])) -%}
{% endmacro %}
