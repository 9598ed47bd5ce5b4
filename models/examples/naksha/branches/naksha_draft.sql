{{
    config(
        materialized='view',
    )
}}

-- What the draft shows: its own states, and below them those of the map when it was forked.
select
    id,
    branch,
    txn,
    get_json_object(properties, '$.name') as name,
    cast(get_json_object(properties, '$.speed') as int) as speed
from {{
    dbt_history.branch_as_of(
        ref('naksha_map'),
        source('naksha', 'branches'),
        'old_town',
        id=['branch', 'id'],
    )
}} as states
