(
    select * from (
    select * from (
        select
            *,
            `_hist_time` as `_valid_from`,
            lead(`_hist_time`) over (
                partition by `customer_id`, `path`
                order by `_hist_time`, `_hist_trans_id`, cast(`_hist_event` as string) in ('1', '4', 'I', 'T')
            ) as `_valid_to`
        from golden.events as log
    ) as versions
    where cast(`_hist_event` as string) in ('1', '4', 'I', 'T')
) as log_versions
    where `_valid_from` < current_timestamp()
        and (`_valid_to` > timestamp'2024-03-03 00:00:00 UTC' or `_valid_to` is null)
        and (`_valid_to` > `_valid_from` or `_valid_to` is null)
        and timestamp'2024-03-03 00:00:00 UTC' < current_timestamp()
)
