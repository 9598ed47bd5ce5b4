{{ config(materialized='history_append') }}

select * from {{ dbt_history.event_rows(
    source('esql', 'b'),
    key=["b_id"],
) }} as history
