{{
    config(
        materialized='history_append',
        unique_key=['id', 'column', 'attribute'],
    )
}}

-- Each run appends the conflicts that prevent a merge of the draft; resolved ones remain.
select
    id,
    `column`,
    attribute,
    base.properties as properties_before,
    mine.properties as properties_in_draft,
    theirs.properties as properties_on_main
from {{
    dbt_history.branch_conflicts(
        ref('naksha_map'),
        source('naksha', 'branches'),
        'old_town',
        id=['branch', 'id'],
        payload=['properties'],
        json=['properties'],
    )
}} as conflicts
