(
    select 'insert' as `_change_type`, `valid_from` as `_changed_at`, versions.*
    from golden.records as versions
    where `valid_from` >= 3L
        and `valid_from` < 7L
        and (`valid_to` > `valid_from` or `valid_to` is null)

    union all

    select 'delete' as `_change_type`, if(`valid_to` < 2147483647L, `valid_to`, null) as `_changed_at`, versions.*
    from golden.records as versions
    where `valid_to` >= 3L
        and (`valid_to` < 7L and `valid_to` < 2147483647L)
        and (`valid_to` > `valid_from` or `valid_to` is null)
)
