{{
    config(
        materialized='incremental',
        incremental_strategy='history_batch',
        file_format='delta',
        unique_key='customer_id',
        meta={'history': {'convention': 'validity'}},
    )
}}

select * from {{ ref('customer_batches') }}
