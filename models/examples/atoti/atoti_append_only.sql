{{
    config(
        materialized='history_append',
        meta={'history': {'convention': 'validity', 'type': 'bigint', 'append_only': true}},
    )
}}

-- A row is valid from the number of its batch. The append writes valid_from.
select
    _batch,
    id,
    description
from {{ ref('atoti_added_rows') }}
