{{
    config(
        materialized='view',
    )
}}

-- The main table, with `mod_time` and `mod_user` from its mirror.
select
    obs_raw_id,
    history_id,
    vars_id,
    observed_at,
    datum,
    mod_time,
    mod_user
from {{ dbt_history.latest(ref('obs_raw_hx'), 'obs_raw_id') }} as observations
