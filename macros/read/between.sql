{#
    The versions that were in force between two instants, [from_at, to_at): SQL's `for system_time from ... to ...`. The same rows as
    `overlaps`, by the word that people look for.
#}
{% macro between(relation, from_at, to_at, convention='fivetran') %}
    {% do return(adapter.dispatch('between', 'dbt_history')(relation, from_at, to_at, convention)) %}
{% endmacro %}


{% macro default__between(relation, from_at, to_at, convention) %}
    {%- do return(dbt_history._overlapping(relation, from_at, to_at, convention, 'between')) -%}
{% endmacro %}
