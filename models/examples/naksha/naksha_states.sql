{{
    config(
        materialized='history_batch',
        unique_key=['space', 'id'],
        meta={'history': {'convention': 'naksha'}},
    )
}}

{{
    dbt_history.feature_states(
        ref('stg_naksha__writes'),
        id=['space', 'id'],
        payload=['geometry', 'properties'],
        json=['geometry', 'properties'],
    )
}}
