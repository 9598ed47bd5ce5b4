{#
    The last transaction up to a number or a time, as an SQL expression for `as_of` and
    `feature_changes` on states:

        as_of(states, transaction_at(transactions, number=17), 'naksha')

    A number above the last one means the last transaction; before the first one it returns -1, as
    of which nothing exists.
#}
{% macro transaction_at(transactions, number=none, at=none) %}
    {% if (number is none) == (at is none) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'transaction_at', 'give either a number or a time',
            got='number ' ~ number ~ ', at ' ~ at, expected='one of them',
        )) %}
    {% endif %}
    {%- if at is none -%}
        {%- set reached = '`id` <= '
            ~ dbt_history._instant(number, {'type': 'bigint'}, 'transaction_at') -%}
    {%- else -%}
        {%- set reached = '`txts` <= '
            ~ dbt_history._instant(at, {'type': 'timestamp'}, 'transaction_at') -%}
    {%- endif -%}
    {%- do return(
        'coalesce((select max_by(`txid`, `id`) from ' ~ transactions ~ ' where ' ~ reached
            ~ '), -1L)'
    ) -%}
{% endmacro %}
