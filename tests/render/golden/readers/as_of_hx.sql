(
    select * except (`__place`) from (
        select
            *,
            row_number() over (
                partition by `customer_id`
                order by `mod_time` desc, `customers_hx_id` desc
            ) as `__place`
        from golden.customers_hx as log
        where `mod_time` <= current_timestamp()
    ) as newest
    where `__place` = 1 and not coalesce(`deleted`, false)
)
