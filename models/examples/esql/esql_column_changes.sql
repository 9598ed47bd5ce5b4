{{
    config(
        materialized='table',
    )
}}

-- Who changed which column of x from what to what?
select * from {{ dbt_history.column_changes(ref('x_history'), key='_id') }} as report
