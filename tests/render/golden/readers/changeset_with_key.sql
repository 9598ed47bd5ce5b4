(
    select
        case
            when not `__is_update` then `_change_type`
            when `_change_type` = 'delete' then 'update_preimage'
            else 'update_postimage'
        end as `_change_type`,
        * except (`_change_type`, `__is_update`)
    from (
        select
            *,
            min(`_change_type`) over one_change <> max(`_change_type`) over one_change
                as `__is_update`
        from (
            select
                `_change_type`,
                if(`_change_type` = 'insert', `_fivetran_start`, if(`_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC', (`_fivetran_end` + interval 1 millisecond), null)) as `_changed_at`,
                versions.*
            from (
                select * from golden.records as stored
                where ((`_fivetran_start` >= timestamp'2024-03-03 00:00:00 UTC' and `_fivetran_start` < timestamp'2024-03-04 00:00:00 UTC') or (`_fivetran_end` >= (timestamp'2024-03-03 00:00:00 UTC' - interval 1 millisecond) and (`_fivetran_end` < (timestamp'2024-03-04 00:00:00 UTC' - interval 1 millisecond) and `_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC')))
                    and (`_fivetran_end` > (`_fivetran_start` - interval 1 millisecond) or `_fivetran_end` is null)
                    and (
                        select
                            if(
                                max(if(kind = 'horizon', try_cast(instant as timestamp), null)) >= timestamp'2024-03-03 00:00:00 UTC',
                                raise_error(format_string(
                                    'dbt_history.changeset: the history of golden.records was cleaned, so this would not be exact\n  got: %1$s\n  expected: a point after the horizon, %2$s',
                                    cast(timestampadd(microsecond, unix_micros(cast(timestamp'2024-03-03 00:00:00 UTC' as timestamp)), timestamp_ntz'1970-01-01') as string) || ' UTC',
                                    max_by(instant, if(kind = 'horizon', try_cast(instant as timestamp), null))
                                )),
                                true
                            )
                        from `golden`.`history_marks`
                        where table_name = 'records'
                            and kind in ('horizon', 'tag')
                    )
            ) as versions
            lateral view explode(array('insert', 'delete')) sides as `_change_type`
            where (`_change_type` = 'insert' and `_fivetran_start` >= timestamp'2024-03-03 00:00:00 UTC' and `_fivetran_start` < timestamp'2024-03-04 00:00:00 UTC')
                or (`_change_type` = 'delete' and `_fivetran_end` >= (timestamp'2024-03-03 00:00:00 UTC' - interval 1 millisecond) and (`_fivetran_end` < (timestamp'2024-03-04 00:00:00 UTC' - interval 1 millisecond) and `_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC'))
        ) as sides
        window one_change as (partition by `id`, `end`, `_changed_at`)
    ) as changes
)
