(
    select * from golden.records
    where `valid_from` <= 7L
        and (`valid_to` > 7L or `valid_to` is null)
        and (
            select
                if(
                    max(if(kind = 'horizon', try_cast(instant as bigint), null)) > 7L
                    and not coalesce(bool_or(kind = 'tag' and try_cast(instant as bigint) = 7L), false),
                    raise_error(format_string(
                        'dbt_history.as_of: the history of golden.records was cleaned, so this would not be exact\n  got: %1$s\n  expected: a point at or after the horizon, %2$s, or a tag',
                        cast(7L as string),
                        max_by(instant, if(kind = 'horizon', try_cast(instant as bigint), null))
                    )),
                    true
                )
            from `golden`.`history_marks`
            where table_name = 'records'
                and kind in ('horizon', 'tag')
        )
)
