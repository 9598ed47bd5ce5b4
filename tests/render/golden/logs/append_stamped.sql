    insert into `golden`.`orders` (
        `id`, `at`, `note`, `valid_from`
    )
    select *, 7L from (select staged.`Id`, staged.`at`, staged.`note` from `staged_view` as staged except all select `id`, `at`, null from `golden`.`orders`) as added
