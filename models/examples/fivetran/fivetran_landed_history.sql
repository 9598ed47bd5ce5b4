{{
    config(
        materialized='history_batch',
        unique_key='id',
        meta={'history': {'convention': 'fivetran'}},
    )
}}

select * from {{ source('landing', 'fivetran_items_landing') }}
where _batch > {{ dbt_history.last_batch() }}
    and _batch <= {{ var('fivetran_batches', 6) }}
