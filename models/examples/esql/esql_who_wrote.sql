{{
    config(
        materialized='view',
    )
}}

-- Which run of dbt wrote this row of the coarse log, and who ran it why?
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
