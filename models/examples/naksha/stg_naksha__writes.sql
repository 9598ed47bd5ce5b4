{{
    config(
        materialized='view',
    )
}}

-- `--vars 'naksha_transactions: 5'` limits the log; the next run continues.
select
    txn,
    position,
    action,
    space,
    id,
    app_id,
    author,
    message,
    at,
    mode,
    expected_uuid,
    geometry,
    properties
from {{ ref('naksha_writes') }}
where txn <= {{ var('naksha_transactions', 14) }}
