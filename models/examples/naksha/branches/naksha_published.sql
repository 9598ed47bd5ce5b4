{{
    config(
        materialized='view',
    )
}}

-- The map at the tag created after the merge of the draft.
select
    id,
    txn,
    `@ns:com:here:xyz`.author,  -- noqa: RF05
    `@ns:com:here:xyz`.version,  -- noqa: RF05
    get_json_object(properties, '$.name') as name,
    cast(get_json_object(properties, '$.speed') as int) as speed
from {{ dbt_history.as_of(ref('naksha_map'), 'tag:calm_old_town', 'naksha') }} as states
where branch = 'main'
