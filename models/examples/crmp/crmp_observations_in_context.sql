{{
    config(
        materialized='view',
    )
}}

-- Links refer to the rows that were current when the observation changed: no time is needed.
with

observations as (

    select * from {{ ref('obs_raw_hx') }}

),

histories as (

    select * from {{ ref('meta_history_hx') }}

),

variables as (

    select * from {{ ref('meta_vars_hx') }}

),

final as (

    select
        observations.obs_raw_hx_id,
        observations.obs_raw_id,
        observations.deleted,
        observations.mod_user,
        histories.station_name,
        histories.elevation_m,
        variables.variable_name,
        observations.datum,
        variables.unit
    from observations
    left outer join histories
        on observations.meta_history_hx_id = histories.meta_history_hx_id
    left outer join variables
        on observations.meta_vars_hx_id = variables.meta_vars_hx_id

)

select * from final
