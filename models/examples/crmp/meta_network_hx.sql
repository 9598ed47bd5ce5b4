{{
    config(
        materialized='history_append',
    )
}}

select * from {{ dbt_history.hx_rows(
    source('crmp', 'meta_network'),
    key='network_id',
) }} as history
