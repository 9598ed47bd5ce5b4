{{
    config(
        materialized='history_append',
    )
}}

{{
    dbt_history.feature_outcomes(
        ref('stg_naksha__writes'),
        states=ref('naksha_states'),
        after=dbt_history.last_batch(),
        id=['space', 'id'],
        payload=['geometry', 'properties'],
        json=['geometry', 'properties'],
    )
}}
