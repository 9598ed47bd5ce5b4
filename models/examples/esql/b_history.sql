{{ config(materialized='history_append') }}

select * from {{ dbt_history.event_rows(
    source('esql', 'b'),
    key=["_id"],
) }} as history
