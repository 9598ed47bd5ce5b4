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
    concat_ws(', ', array_sort(collect_set(concat(event, ' ', `table`)))) as moved
from {{ ref('esql_core_history') }}
where trans_id not like 'esql.%'
group by trans_id
