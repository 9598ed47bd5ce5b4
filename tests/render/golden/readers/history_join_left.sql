(
    select
        `id`,
        `_at` as valid_from,
        `_next_at` as valid_to,
        if(`customers`.begins, `customers`.version, null) as `customers`,
        if(`orders`.begins, `orders`.version, null) as `orders`
    from (
        select
            `id`,
            `_at`,
            lead(`_at`) over (partition by `id` order by `_at`, `_begins`) as `_next_at`,
            last_value(
                if(
                    `_table` = 1,
                    struct(`_begins` as begins, `customers` as version),
                    null
                ),
                true
            ) over (partition by `id` order by `_at`, `_begins` rows between unbounded preceding and current row) as `customers`,
            last_value(
                if(
                    `_table` = 2,
                    struct(`_begins` as begins, `orders` as version),
                    null
                ),
                true
            ) over (partition by `id` order by `_at`, `_begins` rows between unbounded preceding and current row) as `orders`
        from (
            select
                    `customers`.`id` as `id`,
                    `customers`.`_fivetran_start` as `_at`,
                    true as `_begins`,
                    1 as `_table`,
                    struct(`customers`.*) as `customers`,
                    null as `orders`
                from golden.customers as `customers`
                where coalesce(`customers`.`_fivetran_start` < if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null), true)

            union all

            select
                    `customers`.`id` as `id`,
                    if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null) as `_at`,
                    false as `_begins`,
                    1 as `_table`,
                    struct(`customers`.*) as `customers`,
                    null as `orders`
                from golden.customers as `customers`
                where coalesce(`customers`.`_fivetran_start` < if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null), false)


            union all

            select
                    `orders`.`buyer` as `id`,
                    `orders`.`valid_from` as `_at`,
                    true as `_begins`,
                    2 as `_table`,
                    null as `customers`,
                    struct(`orders`.*) as `orders`
                from golden.orders as `orders`
                where coalesce(`orders`.`valid_from` < if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null), true)

            union all

            select
                    `orders`.`buyer` as `id`,
                    if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null) as `_at`,
                    false as `_begins`,
                    2 as `_table`,
                    null as `customers`,
                    struct(`orders`.*) as `orders`
                from golden.orders as `orders`
                where coalesce(`orders`.`valid_from` < if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null), false)

        ) as points
    ) as periods
    where
        coalesce(`_at` < `_next_at`, true)
        and (
            coalesce(`customers`.begins, false)
        )
)
