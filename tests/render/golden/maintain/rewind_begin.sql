select
        unix_date(date'2024-06-10') as begins,
        greatest(
            max(unix_date(greatest(stored.`from`, if(stored.`to` < date'9999-01-01', stored.`to`, null)))) + 0,
            max(if(changed.`Key-Id` is not null, unix_date(greatest(stored.`from`, if(stored.`to` < date'9999-01-01', stored.`to`, null))), null)) + 1
        ) as can_begin,
        count(changed.`Key-Id`) as versions
    from (
        select *
        from `golden`.`records`
        where `Key-Id` <=> cast('it\'s' as string)
    ) as stored
    left join (
        select distinct `Key-Id`
        from (
            select
        'upsert' as _stage,
        was.`Key-Id`,
        was.`v`,
        date'2024-06-10' as `from`,
        cast(null as date) as `to`
    from (select * from (
    select * from golden.records
    where `from` <= date'2024-01-15'
        and (`to` > date'2024-01-15' or `to` is null)
) as was where `Key-Id` <=> cast('it\'s' as string)) as was
    left join (select * from `golden`.`records` where (`to` is null)) as is_now on was.`Key-Id` = is_now.`Key-Id`
    where is_now.`Key-Id` is null or not (was.`Key-Id` <=> is_now.`Key-Id` and was.`v` <=> is_now.`v`)
    union all
    select
        'delete' as _stage,
        is_now.`Key-Id`,
        is_now.`v`,
        cast(null as date) as `from`,
        date'2024-06-10'
            as `to`
    from (select * from (select * from `golden`.`records` where (`to` is null)) as is_now where `Key-Id` <=> cast('it\'s' as string)) as is_now
    left anti join (
    select * from golden.records
    where `from` <= date'2024-01-15'
        and (`to` > date'2024-01-15' or `to` is null)
) as was on was.`Key-Id` = is_now.`Key-Id`
        ) as batch
    ) as changed on stored.`Key-Id` = changed.`Key-Id`
