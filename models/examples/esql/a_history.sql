{{ config(materialized='history_append') }}

select * from {{ dbt_history.event_rows(
    source('esql', 'a'),
    key=["a_id"],
) }} as history
