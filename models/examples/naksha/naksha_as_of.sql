{{
    config(
        materialized='view',
    )
}}

-- Both spaces at the same number: their content after the seventh transaction with changes.
select
    space,
    id,
    txn,
    txn_next,
    properties
from {{
    dbt_history.as_of(
        ref('naksha_states'),
        dbt_history.transaction_at(ref('naksha_transactions'), number=7),
        'naksha',
    )
}} as states
