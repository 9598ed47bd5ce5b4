{{
    config(
        materialized='history_append',
    )
}}

select * from {{ dbt_history.hx_rows(
    source('crmp', 'meta_station'),
    key='station_id',
    references=[{'column': 'network_id', 'history': ref('meta_network_hx')}],
) }} as history
