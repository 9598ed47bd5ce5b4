{#
    The versions that were in force between two instants, [from_at, to_at): SQL's `for system_time
    from ... to ...`. An alias of `overlaps`.
#}
{% macro between(relation, from_at, to_at, convention=none) %}
    {%- do return(dbt_history._overlapping(relation, from_at, to_at, convention, 'between')) -%}
{% endmacro %}
