{{
    config(
        materialized='history_append',
        unique_key=['invocation_id', 'schema', 'table', 'last_version'],
    )
}}

-- The dbt runs as transactions over the history tables; stored, because Delta removes old commits.
select * from {{ dbt_history.history_runs([
    ref('a_history'),
    ref('b_history'),
    ref('x_history'),
    ref('esql_core_history'),
]) }} as runs
