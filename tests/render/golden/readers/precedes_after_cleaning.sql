(
    select * from golden.records
    where (`_fivetran_end` <= (timestamp'2024-03-03 00:00:00 UTC' - interval 1 millisecond) and `_fivetran_end` < timestamp'9999-01-01 00:00:00 UTC')
        and (`_fivetran_end` > (`_fivetran_start` - interval 1 millisecond) or `_fivetran_end` is null)
        and (
            select
                if(
                    max(if(kind = 'horizon', try_cast(instant as timestamp), null)) is not null,
                    raise_error(format_string(
                        'dbt_history.precedes: the history of golden.records was cleaned, so this would not be exact\n  got: %1$s\n  expected: a point at or after the horizon, %2$s',
                        'the whole past',
                        max_by(instant, if(kind = 'horizon', try_cast(instant as timestamp), null))
                    )),
                    true
                )
            from `golden`.`history_marks`
            where table_name = 'records'
                and kind in ('horizon', 'tag')
        )
)
