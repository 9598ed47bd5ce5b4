{#
    All states, with their authors and the transactions in which they were in force. With
    `--vars 'naksha_transactions: 5'` on a new table, the states of the first five transactions as they were then.
#}
{%- set last = var('naksha_transactions', 14) -%}
{%- set states -%}
(
    select
        space,
        id,
        i,
        txn,
        txn_next,
        `@ns:com:here:xyz`.action as action,
        `@ns:com:here:xyz`.version as version,
        `@ns:com:here:xyz`.author as author
    from {{ ref('naksha_states') }}
)
{%- endset -%}
{%- set expected -%}
(
    select
        * except (txn_next),
        if(txn_next <= {{ last }}, txn_next, null) as txn_next
    from {{ ref('naksha_states_expected') }}
    where txn <= {{ last }}
)
{%- endset -%}
{{ dbt_history.test_matches_expected(states, expected) }}
