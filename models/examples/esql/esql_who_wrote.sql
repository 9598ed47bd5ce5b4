{{
    config(
        materialized='view',
    )
}}

-- Which dbt run wrote this row of the coarse log, who ran it, and why?
select
    trans_id,
    `user`,
    `table`,
    event,
    _invocation_id as invocation_id,
    _author as author,
    _application as application,
    _message as message
from {{ dbt_history.rows_with_runs(ref('esql_core_history'), ref('esql_runs')) }} as log
