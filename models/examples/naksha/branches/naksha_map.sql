{{
    config(
        materialized='history_batch',
        unique_key=['branch', 'id'],
        meta={'history': {'convention': 'naksha'}},
    )
}}

{{
    dbt_history.feature_states(
        source('naksha', 'edits'),
        id=['branch', 'id'],
        payload=['properties'],
        json=['properties'],
        branches=source('naksha', 'branches'),
    )
}}
