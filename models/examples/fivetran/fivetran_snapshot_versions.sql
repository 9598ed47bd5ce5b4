{{
    config(
        materialized='view',
    )
}}

select * from {{ dbt_history.snapshot_versions(ref('fivetran_by_timestamp')) }}
