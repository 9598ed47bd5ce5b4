(
    select
        `customers`.`id`,
        greatest(`customers`.`_fivetran_start`, `orders`.`valid_from`, (select max(try_cast(instant as timestamp)) from `golden`.`history_marks` where kind = 'horizon' and table_name in ('customers', 'orders'))) as valid_from,
        least(if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null), if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null)) as valid_to,
        struct(`customers`.*) as `customers`,
        struct(`orders`.*) as `orders`
    from golden.customers as `customers`
    inner join golden.orders as `orders`
        on
            `customers`.`id` = `orders`.`buyer` and
            coalesce(`customers`.`_fivetran_start` < if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null), true)
            and coalesce(`orders`.`valid_from` < if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null), true)
    where
        coalesce(
            greatest(`customers`.`_fivetran_start`, `orders`.`valid_from`, (select max(try_cast(instant as timestamp)) from `golden`.`history_marks` where kind = 'horizon' and table_name in ('customers', 'orders')))
            < least(if(`customers`.`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`customers`.`_fivetran_end` + interval 1 millisecond), null), if(`orders`.`valid_to` < timestamp'9999-01-01 00:00:00 UTC', `orders`.`valid_to`, null)),
            true
        )
)
