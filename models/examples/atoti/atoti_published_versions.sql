{{
    config(
        materialized='history_append',
        unique_key='published_at',
    )
}}

-- A database version consists of one version per table. Each run appends a row.
select
    current_user() as published_by,
    current_timestamp() as published_at,
    products.version as products_version,
    sales.version as sales_version
from {{ dbt_history.current_version(ref('atoti_products'), empty_table_version=0) }} as products
cross join
    {{ dbt_history.current_version(ref('atoti_sales'), empty_table_version='1970-01-01') }} as sales
