{#
    The facts valid at one instant as they were known at another: the data say when a fact holds,
    the history says when it was recorded.

        holds    Jan --------- Jul ---------->
        known in March         price 10
        corrected in May       price 10 ---- price 12 from Feb on
        valid at Mar, known at Apr: 10        valid at Mar, known at Jun: 12

    A late correction is visible only from the time it was recorded. `valid` and `known` are the
    conventions of the two axes; the key of the history is the record's key plus the start of the
    validity period.
#}
{% macro bitemporal(relation, valid_at, known_at, valid, known='validity') %}
    {%- set was_known = dbt_history.as_of(relation, known_at, known) -%}
    {%- do return(dbt_history.as_of(was_known ~ ' as was_known', valid_at, valid)) -%}
{% endmacro %}
