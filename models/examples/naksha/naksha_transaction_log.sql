{{
    config(
        materialized='history_append',
        post_hook="{% do dbt_history.number_transactions(this, this.schema ~ '.naksha_transaction_numbers') %}",
    )
}}

{{
    dbt_history.transaction_rows(
        '(select * from ' ~ ref('naksha_outcomes') ~ ' where txn > ' ~ dbt_history.last_batch() ~ ') as outcomes',
        space='space',
    )
}}
