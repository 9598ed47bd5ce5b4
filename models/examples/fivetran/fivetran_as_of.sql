{{
    config(
        materialized='view',
    )
}}

-- Half a minute after T4: the change at T4 is known, the one at T5 is not.
select
    id,
    col1,
    col2,
    _fivetran_start,
    _fivetran_end
from {{ dbt_history.as_of(ref('fivetran_history'), '2024-01-01 00:04:30') }}
