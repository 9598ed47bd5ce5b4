{{
    config(
        materialized='history_append',
        unique_key=['trans_id', 'table', 'event'],
        tblproperties={'delta.enableRowTracking': 'true'},
        post_hook="{{ dbt_history.drain_core_temp_history(ref('esql_core_temp_history'), this) }}",
    )
}}

select * from {{ dbt_history.core_history(ref('esql_core_temp_history')) }} as log
