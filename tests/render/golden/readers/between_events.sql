(
    select * from (
    select * from (
        select
            *,
            `_hist_time` as `__valid_from`,
            lead(`_hist_time`) over (
                partition by `customer_id`, `path`
                order by `_hist_time`, `_hist_trans_id`, cast(`_hist_event` as string) in ('1', '4', 'I', 'T')
            ) as `__valid_to`
        from golden.events as log
    ) as versions
    where cast(`_hist_event` as string) in ('1', '4', 'I', 'T')
) as log_versions
    where `__valid_from` < current_timestamp()
        and (`__valid_to` > timestamp'2024-03-03 00:00:00 UTC' or `__valid_to` is null)
        and (`__valid_to` > `__valid_from` or `__valid_to` is null)
        and timestamp'2024-03-03 00:00:00 UTC' < current_timestamp()
)
