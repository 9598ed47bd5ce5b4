{{
    config(
        materialized='view',
    )
}}

{# The argument is for the unit test: dbt replaces the inputs of one by models without settings. #}
{% set versions = {'convention': 'validity', 'type': 'bigint', 'open_end': 2147483647} %}

select
    product_id,
    name,
    price
from {{ dbt_history.as_of(ref('atoti_products'), 3, versions) }}
