(
    select * from golden.records
    where `valid_from` <= 3L
        and (`valid_to` >= 7L or `valid_to` is null)
        and 3L < 7L
)
