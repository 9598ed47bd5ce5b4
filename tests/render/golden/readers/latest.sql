(
    select * except (`__place`) from (
        select
            *,
            row_number() over (
                partition by `id`
                order by `customers_hx_id` desc
            ) as `__place`
        from golden.customers_hx as log
        where `customers_hx_id` <= 5L
            and `customers_hx_id` > 2L
    ) as newest
    where `__place` = 1 and not coalesce(`deleted`, false)
)
