(
    select * from golden.records
    where `_fivetran_start` <= timestamp'2024-03-03 00:00:00 UTC'
        and (`_fivetran_end` > (timestamp'2024-03-03 00:00:00 UTC' - interval 1 millisecond) or `_fivetran_end` is null)
        and (
            select
                if(
                    max(if(kind = 'horizon', try_cast(instant as timestamp), null)) > timestamp'2024-03-03 00:00:00 UTC'
                    and not coalesce(bool_or(kind = 'tag' and try_cast(instant as timestamp) = timestamp'2024-03-03 00:00:00 UTC'), false),
                    raise_error(format_string(
                        'dbt_history.as_of: the history of golden.records was cleaned, so this would not be exact\n  got: %1$s\n  expected: a point at or after the horizon, %2$s, or a tag',
                        cast(timestampadd(microsecond, unix_micros(cast(timestamp'2024-03-03 00:00:00 UTC' as timestamp)), timestamp_ntz'1970-01-01') as string) || ' UTC',
                        max_by(instant, if(kind = 'horizon', try_cast(instant as timestamp), null))
                    )),
                    true
                )
            from `golden`.`history_marks`
            where table_name = 'records'
                and kind in ('horizon', 'tag')
        )
)
