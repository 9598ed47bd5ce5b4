{{
    config(
        materialized='history_append',
        tblproperties={'delta.appendOnly': 'false'},
    )
}}

-- The inbox of the coarse log: runs only append, and the log drains it.
select * from {{ dbt_history.core_temp_history([
    {'main': source('esql', 'a'), 'key': 'a_id'},
    {'main': source('esql', 'b'), 'key': '_id'},
    {'main': source('esql', 'x'), 'key': '_id'},
]) }} as found
