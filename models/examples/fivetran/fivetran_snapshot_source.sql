{{
    config(
        materialized='view',
    )
}}

select
    id,
    col1,
    col2,
    _fivetran_start as changed_at,
    true as _fivetran_active
from {{ ref('fivetran_landed_history') }}
where _fivetran_active
