{{
    config(
        materialized='history_batch',
        unique_key='product_id',
        meta={'history': {'convention': 'validity', 'open_end': '2099-12-31 23:59:59'}},
    )
}}

select * from {{ dbt_history.batch_rows(dbt_history.changes(ref('atoti_stock'))) }}
