{#
    The versions that were in force between two instants, [from_at, to_at): SQL's `for system_time
    from ... to ...`. The same rows as `overlaps`, by the word that people look for.
#}
{% macro between(relation, from_at, to_at, convention='fivetran') %}
    {%- do return(dbt_history._overlapping(relation, from_at, to_at, convention, 'between')) -%}
{% endmacro %}
