    insert into `golden`.`orders` (
        `id`, `at`, `note`, `valid_from`
    )
    select staged.`Id`, staged.`at`, staged.`note`, staged.`_batch` from `staged_view` as staged where staged.`_batch` > 1 and staged.`_batch` <= 3 and if((select count(*) from `golden`.`orders`) = 40, true, raise_error('dbt_history: another run has appended rows since this one was planned'))
