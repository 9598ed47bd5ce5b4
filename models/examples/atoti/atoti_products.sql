{{
    config(
        materialized='history_batch',
        unique_key='product_id',
        meta={'history': {
            'convention': 'validity',
            'type': 'bigint',
            'open_end': 2147483647,
            'version_order': 'increasing',
        }},
    )
}}

select * from {{ dbt_history.batch_rows(ref('atoti_product_changes'), at='_commit_version') }}
