{{
    config(
        materialized='view',
    )
}}

-- Which tables changed together? A commit without a transaction is a separate transaction.
select
    trans_id,
    min(at) as began_at,
    min(`user`) as by_user,
    concat_ws(
        ', ', array_sort(collect_set(concat(
            case event when 1 then 'insert' when 2 then 'delete' when 3 then 'update' end,
            ' ',
            `table`
        )))
    ) as moved
from {{ ref('esql_core_history') }}
where trans_id not like 'esql.%'
group by trans_id
