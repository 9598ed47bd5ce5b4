(
    select * from (
    select * from golden.prices
    where `valid_from` <= timestamp'2024-04-30 00:00:00 UTC'
        and (`valid_to` > timestamp'2024-04-30 00:00:00 UTC' or `valid_to` is null)
        and (
            select
                if(
                    max(if(kind = 'horizon', try_cast(instant as timestamp), null)) > timestamp'2024-04-30 00:00:00 UTC'
                    and not coalesce(bool_or(kind = 'tag' and try_cast(instant as timestamp) = timestamp'2024-04-30 00:00:00 UTC'), false),
                    raise_error(format_string(
                        'dbt_history.as_of: the history of golden.prices was cleaned, so this would not be exact\n  got: %1$s\n  expected: a point at or after the horizon, %2$s, or a tag',
                        cast(timestampadd(microsecond, unix_micros(cast(timestamp'2024-04-30 00:00:00 UTC' as timestamp)), timestamp_ntz'1970-01-01') as string) || ' UTC',
                        max_by(instant, if(kind = 'horizon', try_cast(instant as timestamp), null))
                    )),
                    true
                )
            from `golden`.`history_marks`
            where table_name = 'prices'
                and kind in ('horizon', 'tag')
        )
) as was_known
    where `holds_from` <= timestamp'2024-03-15 00:00:00 UTC'
        and (`holds_to` > timestamp'2024-03-15 00:00:00 UTC' or `holds_to` is null)
)
