{{
    config(
        materialized='view',
    )
}}

{% set published = ref('atoti_published_versions') %}
{% set last_of = published ~ ' order by published_at desc limit 1)' %}
{% set sales_version = '(select sales_version from ' ~ last_of %}
{% set products_version = '(select products_version from ' ~ last_of %}

-- The latest published version, independent of later changes of the tables.
with

sales as (

    select * from {{ dbt_history.as_of(ref('atoti_sales'), sales_version) }}

),

products as (

    select * from {{ dbt_history.as_of(ref('atoti_products'), products_version) }}

),

final as (

    select
        sales.sale_id,
        sales.product_id,
        products.name,
        products.price,
        sales.pieces
    from sales
    left outer join products
        on sales.product_id = products.product_id

)

select * from final
