{{
    config(
        materialized='view',
    )
}}

-- What did the draft change? With the current state of the map.
select
    id,
    `change`,
    get_json_object(base.properties, '$.name') as name_before,
    get_json_object(mine.properties, '$.name') as name_in_draft,
    get_json_object(theirs.properties, '$.name') as name_now,
    cast(get_json_object(base.properties, '$.speed') as int) as speed_before,
    cast(get_json_object(mine.properties, '$.speed') as int) as speed_in_draft,
    cast(get_json_object(theirs.properties, '$.speed') as int) as speed_now
from {{
    dbt_history.branch_changes(
        ref('naksha_map'),
        source('naksha', 'branches'),
        'old_town',
        id=['branch', 'id'],
        payload=['properties'],
        json=['properties'],
    )
}} as changes
