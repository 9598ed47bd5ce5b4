{{
    config(
        materialized='history_append',
    )
}}

select * from {{ dbt_history.hx_rows(
    source('crmp', 'obs_raw'),
    key='obs_raw_id',
    references=[
        {'column': 'history_id', 'history': ref('meta_history_hx')},
        {'column': 'vars_id', 'history': ref('meta_vars_hx')},
    ],
) }} as history
