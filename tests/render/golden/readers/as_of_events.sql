(
    select * except (`__place`) from (
        select
            *,
            row_number() over (
                partition by `customer_id`, `path`
                order by `_hist_time` desc, `_hist_trans_id` desc, cast(`_hist_event` as string) in ('1', '4', 'I', 'T') desc
            ) as `__place`
        from golden.events as log
        where `_hist_time` <= timestamp'2024-03-03 12:00:00 UTC'
    ) as newest
    where `__place` = 1 and cast(`_hist_event` as string) in ('1', '4', 'I', 'T')
)
