{{
    config(
        materialized='view',
    )
}}

select
    id,
    col1,
    col2,
    _fivetran_start,
    _fivetran_synced
from {{ ref('fivetran_history') }}
where _fivetran_active
