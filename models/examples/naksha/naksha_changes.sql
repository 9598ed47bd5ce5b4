{{
    config(
        materialized='view',
    )
}}

select
    space,
    id,
    txn,
    i,
    change,
    properties
from {{
    dbt_history.feature_changes(
        ref('naksha_states'),
        ['space', 'id'],
        after_time='2024-03-05 09:30:00',
        until_time='2024-03-08 22:00:00',
    )
}} as changes
