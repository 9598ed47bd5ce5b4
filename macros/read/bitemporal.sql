{#
    The facts valid at one instant as they were known at another: the data say when a fact holds,
    the history says when it was recorded.

        holds    Jan --------- Jul ---------->
        known in March         price 10
        corrected in May       price 10 ---- price 12 from Feb on
        valid at Mar, known at Apr: 10        valid at Mar, known at Jun: 12

    A late correction is visible only from the time it was recorded. `valid` and `known` are the
    conventions of the two axes, `known` by default that of the relation's model, else `validity`;
    the key of the history is the record's key plus the start of the validity period.
#}
{% macro bitemporal(relation, valid_at, known_at, valid, known=none) %}
    {#- Before dbt runs, the convention of a `ref` is not known. -#}
    {%- if execute or relation is string -%}
        {%- set known = dbt_history._convention_of(
            relation, dbt_history._convention_of_log(relation, known), 'bitemporal',
            default='validity',
        ) -%}
        {%- do dbt_history._refuse_one_axis(valid, known) -%}
    {%- endif -%}
    {%- set was_known = dbt_history.as_of(relation, known_at, known) -%}
    {%- do return(dbt_history.as_of(was_known ~ ' as was_known', valid_at, valid)) -%}
{% endmacro %}


{# Two axes with one start column are one period, read twice. #}
{% macro _refuse_one_axis(valid, known) %}
    {% set starts = [] %}
    {% for axis in [valid, known] if axis is not none and not dbt_history._is_log(axis) %}
        {% do starts.append(dbt_history.convention(axis).start) %}
    {% endfor %}
    {% if starts | length == 2 and starts[0] | lower == starts[1] | lower %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'bitemporal', 'valid and known are the same period',
            got='valid and known with the start column ' ~ starts[0],
            expected='valid: the period of the data; known: the period of the history',
            node=dbt_history._node_of_context(),
            way_out='give the convention of the history as known, for example'
                ~ " known={'start': 'recorded_from', 'end': 'recorded_to'}",
        )) %}
    {% endif %}
{% endmacro %}
