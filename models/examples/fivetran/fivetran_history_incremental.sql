{{
    config(
        materialized='incremental',
        incremental_strategy='history_batch',
        file_format='delta',
        unique_key='id',
        meta={'history': {'convention': 'fivetran'}},
    )
}}

select * from {{ ref('stg_fivetran__request_files') }}
where _batch <= {{ var('fivetran_batches', 6) }}
