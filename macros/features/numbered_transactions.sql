{#
    The log of transactions with the numbers assigned so far, as a sub-query for the FROM clause.
    `space`, `id` and `ts` are set together, and NULL for a transaction that has no number yet or
    whose space is unknown.
#}
{% macro numbered_transactions(transactions, numbers, spaces=none) %}
    {%- set is_known = "entries.`schema` <> 'COMMIT_MSG'"
        ~ (
            ' and entries.`table` in (' ~ dbt_history._texts(spaces) ~ ')' if spaces is not none
                else ''
        ) -%}
    {%- set sql -%}
(
    select
        entries.*,
        if(numbered.`id` is not null and {{ is_known }}, entries.`table`, null) as `space`,
        numbered.`id`,
        numbered.`ts`
    from {{ transactions }} as entries
    left join {{ numbers }} as numbered
        on entries.`txid` = numbered.`txid`
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
