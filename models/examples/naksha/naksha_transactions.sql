{{
    config(
        materialized='view',
    )
}}

-- The numbers are in a separate table, filled by the numbering operation.
select
    i,
    txid,
    txi,
    txts,
    txdb,
    txn,
    `schema`,
    `table`,
    commit_msg,
    commit_json,
    space,
    id,
    ts
from {{
    dbt_history.numbered_transactions(
        ref('naksha_transaction_log'),
        ref('naksha_transaction_log').schema ~ '.naksha_transaction_numbers',
    )
}} as numbered
