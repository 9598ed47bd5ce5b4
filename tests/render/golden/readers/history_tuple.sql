(
    select
        (select coalesce(max(`orders_hx_id`), 0L) from golden.orders_hx as log where `mod_time` <= timestamp'2024-03-03 00:00:00 UTC') as `orders_hx_id`,
        (select coalesce(max(`own id`), 0L) from golden.customers_hx as log where `mod_time` <= timestamp'2024-03-03 00:00:00 UTC') as `own id`
)
