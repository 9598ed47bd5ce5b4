(
    select
        `_change_type`,
        if(`_change_type` = 'insert', `valid_from`, if(`valid_to` < 2147483647L, `valid_to`, null)) as `_changed_at`,
        versions.*
    from (
        select * from golden.records as stored
        where ((`valid_from` >= 3L and `valid_from` < 7L) or (`valid_to` >= 3L and (`valid_to` < 7L and `valid_to` < 2147483647L)))
            and (`valid_to` > `valid_from` or `valid_to` is null)
    ) as versions
    lateral view explode(array('insert', 'delete')) sides as `_change_type`
    where (`_change_type` = 'insert' and `valid_from` >= 3L and `valid_from` < 7L)
        or (`_change_type` = 'delete' and `valid_to` >= 3L and (`valid_to` < 7L and `valid_to` < 2147483647L))
)
