{#
    Whether a range of transactions begins after the retention horizon, as a list of one term for
    WHERE, or of none where the table cannot have been cleaned. `starts`: from which transaction on,
    `ends`: up to which one, as SQL.

        txn             1     2     3     4     5
        horizon                     '- states that ended by 3 are removed
        from 4                            x     x     exact
        from 3                      x     x     x     refused: what ended at 3 is missing
        up to 3         x     x     x                 refused
        no start        x     x     x     x     x     what is left: the states in force at 3, too

    Marks do not say which states a cleaning removed. From 3 on, all may be there: only states that
    begin and end at 3, such as deletions, can be missing. After a time, a transaction that left no
    state cannot be told from one whose states were removed. Both are refused, and the message names
    the way to what is left.
#}
{% macro _not_cleaned_from(states, starts, ends, caller_name) %}
    {%- set points = starts or ends -%}
    {%- if not points -%} {%- do return([]) -%} {%- endif -%}
    {%- set point = points[0] if points | length == 1
        else ('greatest(' if starts else 'least(') ~ points | join(', ') ~ ')' -%}
    {%- set reader = {
        'table': dbt_history._table_of_text(states) if states is string else states,
        'convention': dbt_history.convention('naksha'),
    } -%}
    {%- do return([dbt_history._not_below_retention_horizon(
        reader, point, caller_name, strictly=true,
        way_out="where: '`txn` >= 4', without from_txn, to_txn or a time, takes what is left from 4"
            ~ ' on',
    )] | reject('none') | list) -%}
{% endmacro %}


{#
    A range from one transaction to another, both inclusive: {'terms', 'starts', 'ends'}: terms for
    WHERE, and the bounds for `_not_cleaned_from`.
#}
{% macro _range_of_txns(txn, from_txn, to_txn, caller_name) %}
    {%- set found = {'terms': ['true'], 'starts': [], 'ends': []} -%}
    {%- for operator, bound, bounds in [
        ['>=', from_txn, found.starts], ['<=', to_txn, found.ends],
    ] if bound is not none -%}
        {%- set instant = dbt_history._instant(
            bound, dbt_history.convention('naksha'), caller_name,
        ) -%}
        {%- do bounds.append(instant) -%}
        {%- do found.terms.append(txn ~ ' ' ~ operator ~ ' ' ~ instant) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}
