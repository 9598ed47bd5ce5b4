{{
    config(
        materialized='history_append',
        unique_key='published_at',
    )
}}

{% set versions = {'convention': 'validity', 'type': 'bigint', 'open_end': 2147483647} %}

-- A database version consists of one version per table. Each run appends a row.
select
    current_user() as published_by,
    current_timestamp() as published_at,
    products.version as products_version,
    sales.version as sales_version
from {{ dbt_history.current_version(ref('atoti_products'), versions, 0) }} as products
cross join {{ dbt_history.current_version(ref('atoti_sales'), 'validity', '1970-01-01') }} as sales
