{{
    config(
        materialized='history_batch',
        unique_key='sale_id',
        meta={'history': {'convention': 'validity', 'version_order': 'increasing'}},
    )
}}

select * from {{ dbt_history.batch_rows(ref('atoti_sale_changes')) }}
