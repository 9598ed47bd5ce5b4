(
    select * except (`__place`) from (
        select
            *,
            row_number() over (
                partition by `id`
                order by `mod_time` desc, `customers_hx_id` desc
            ) as `__place`
        from golden.customers_hx as log
        where `mod_time` <= timestamp'2024-03-03 00:00:00 UTC'
    ) as newest
    where `__place` = 1 and not coalesce(`deleted`, false)
)
