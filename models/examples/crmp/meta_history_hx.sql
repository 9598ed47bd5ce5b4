{{
    config(
        materialized='history_append',
    )
}}

select * from {{ dbt_history.hx_rows(
    source('crmp', 'meta_history'),
    key='history_id',
    references=[{'column': 'station_id', 'history': ref('meta_station_hx')}],
) }} as history
