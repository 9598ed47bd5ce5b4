(
    select * except (`_place`) from (
        select
            *,
            row_number() over (
                partition by `id`
                order by `customers_hx_id` desc
            ) as `_place`
        from golden.customers_mirror as log
        where `customers_hx_id` <= 5L
    ) as newest
    where `_place` = 1 and not coalesce(`deleted`, false)
)
