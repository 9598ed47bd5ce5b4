(
    select * except (`__was_deleted`, `__differs`) from (
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
                ) as `__was_deleted`,
                not (
                    if(`deleted`, null, `path`) <=> lag(
                        if(`deleted`, null, `path`)
                    ) over item
                    and if(`deleted`, null, `Is ``Current```) <=> lag(
                        if(`deleted`, null, `Is ``Current```)
                    ) over item
                ) as `__differs`
            from golden.customers_hx as log
            where `id` <=> 7
            window item
                as (partition by `id` order by `customers_hx_id`)
        ) as rows
    ) as changes
    where `mod_user` = 'o\'neil'
        and `__differs`
)
