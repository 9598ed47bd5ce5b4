(
    select coalesce(max(version), 0L) as version
    from (
        select
            greatest(
                max(`valid_from`),
                max(if(`valid_to` < 2147483647L, `valid_to`, null))
            ) as version
        from golden.records as versions

        union all

        select max(try_cast(instant as bigint)) as version
        from `golden`.`history_marks`
        where kind = 'horizon'
            and table_name = 'records'
    ) as versions
)
