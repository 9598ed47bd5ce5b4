{{
    config(
        materialized='view',
    )
}}

-- The map as it was when the draft had been merged, whatever was edited later.
select
    id,
    txn,
    `@ns:com:here:xyz`.author,  -- noqa: RF05
    `@ns:com:here:xyz`.version,  -- noqa: RF05
    get_json_object(properties, '$.name') as name,
    cast(get_json_object(properties, '$.speed') as int) as speed
from {{ dbt_history.as_of(ref('naksha_map'), 'tag:calm_old_town', 'naksha') }} as states
where branch = 'main'
