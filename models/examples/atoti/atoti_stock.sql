{{
    config(
        materialized='table',
    )
}}

-- An ordinary table, rebuilt on every run.
select
    product_id,
    count_if(_change_type in ('insert', 'update_postimage')) as deliveries
from {{ ref('atoti_product_changes') }}
group by product_id
