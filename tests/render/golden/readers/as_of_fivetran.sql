(
    select * from golden.records
    where `_fivetran_start` <= timestamp'2024-03-03 00:00:00 UTC'
        and (`_fivetran_end` > (timestamp'2024-03-03 00:00:00 UTC' - interval 1 millisecond) or `_fivetran_end` is null)
)
