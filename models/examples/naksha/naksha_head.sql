{{
    config(
        materialized='view',
    )
}}

select
    space,
    id,
    txn,
    geometry,
    properties,
    `@ns:com:here:xyz`  -- noqa: RF05
from {{ ref('naksha_states') }}
where txn_next is null
