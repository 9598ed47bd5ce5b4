(
    select * except (`__was_deleted`) from (
        select
            case
                when coalesce(`deleted`, false) then 'delete'
                when `__was_deleted` then 'insert'
                else 'update'
            end as `_change_type`,
            if(`__was_deleted`, null, `__previous`) as `_previous_hx_id`,
            * except (`__previous`)
        from (
            select
                *,
                lag(`customers_hx_id`) over item as `__previous`,
                coalesce(
                    lag(`deleted`) over item, lag(`customers_hx_id`) over item is null
                ) as `__was_deleted`
            from golden.customers_hx as log
            window item
                as (partition by `id` order by `customers_hx_id`)
        ) as rows
    ) as changes
    where `mod_time` >= timestamp'2024-03-03 00:00:00 UTC'
        and `mod_time` < current_timestamp()
        and `_change_type` in ('update', 'delete')
)
