{{
    config(
        materialized='view',
    )
}}

-- The draft's content: its states, over those of the map at the fork.
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
