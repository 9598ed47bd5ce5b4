{{
    config(
        materialized='history_batch',
        unique_key='id',
        meta={'history': {'convention': 'validity', 'type': 'bigint', 'open_end': 2147483647}},
    )
}}

{% set changes %}
(
    select * except (example)
    from {{ ref('atoti_documented_changes') }}
    where example = 'update'
)
{% endset %}

select * from {{ dbt_history.batch_rows(changes, at='_commit_version') }}
