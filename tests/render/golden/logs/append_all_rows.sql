    insert into `golden`.`orders` (
        `id`, `at`, `note`
    )
    select staged.`Id`, staged.`at`, staged.`note` from `staged_view` as staged
