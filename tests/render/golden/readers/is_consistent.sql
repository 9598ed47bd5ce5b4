(
    select coalesce(bool_and(is_within), true) as is_consistent
    from (
        select coalesce(max(`customers_hx_id`) <= (select max(n) from bounds), true) as is_within
        from golden.orders_hx as log
        where `orders_hx_id` <= 5
    ) as links
)
