{#
    What was believed at one instant about another one: the table says when a fact holds (its data)
    and since when we know it (its history).

        holds    Jan --------- Jul ---------->
        known in March         price 10
        corrected in May       price 10 ---- price 12 from Feb on
        valid at Mar, known at Apr: 10        valid at Mar, known at Jun: 12

    A late correction is visible only from when it was known. `valid` and `known` are the
    conventions of the two axes; the record's key in the history is its key and the start of what it
    holds for.
#}
{% macro bitemporal(relation, valid_at, known_at, valid, known='validity') %}
    {%- set was_known = dbt_history.as_of(relation, known_at, known) -%}
    {%- do return(dbt_history.as_of(was_known ~ ' as was_known', valid_at, valid)) -%}
{% endmacro %}
