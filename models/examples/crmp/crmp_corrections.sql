{{
    config(
        materialized='view',
    )
}}

-- Who corrected or removed an existing value?
select
    obs_raw_id,
    _change_type as kind,
    mod_user,
    mod_time,
    datum,
    obs_raw_hx_id,
    _previous_hx_id as previous_hx_id
from {{ dbt_history.find_changes(
    ref('obs_raw_hx'),
    key='obs_raw_id',
    column='datum',
    kind=['update', 'delete'],
) }} as corrections
