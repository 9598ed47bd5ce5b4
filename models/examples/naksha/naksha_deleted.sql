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
from {{ dbt_history.deleted_features(ref('naksha_states'), ['space', 'id']) }} as deleted
