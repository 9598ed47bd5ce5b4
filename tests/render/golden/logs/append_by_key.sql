    insert into `golden`.`orders` (
        `id`, `at`, `note`
    )
    select staged.`Id`, staged.`at`, staged.`note` from `staged_view` as staged left anti join `golden`.`orders` as stored on staged.`id` <=> stored.`id` and staged.`at` <=> stored.`at`
