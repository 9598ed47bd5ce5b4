{{
    config(
        materialized='view',
    )
}}

-- Append-only: a quote's number is the version from which the row is valid, and no row ends.
select
    quote_id,
    product_id,
    amount
from {{ dbt_history.as_of(ref('atoti_quotes'), 3) }}
