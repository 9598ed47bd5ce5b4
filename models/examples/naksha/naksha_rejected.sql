{{
    config(
        materialized='view',
    )
}}

select
    txn,
    position,
    space,
    id,
    action,
    outcome,
    reason,
    app_id,
    author,
    at
from {{ ref('naksha_outcomes') }}
where outcome in ('CONFLICT', 'NOT_FOUND', 'ERROR', 'UNDONE')
