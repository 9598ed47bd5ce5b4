(
    select * from `golden`.`my records`
    where `start` < date'2024-03-04'
        and (`end` > date_sub(date'2024-03-03', 1) or `end` is null)
        and (`end` > date_sub(`start`, 1) or `end` is null)
        and date'2024-03-03' < date'2024-03-04'
)
