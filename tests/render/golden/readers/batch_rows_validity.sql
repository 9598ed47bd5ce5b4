( /* dbt_history:plain_events {} */
    select
        if(`_begins`, 'upsert', 'delete') as `_stage`,
        * except (
            `_change_type`, `_commit_version`, `_commit_timestamp`, `_begins`, `_at`, `_place`
        ),
        if(`_begins`, `_at`, null)
            as `valid_from`,
        if(
            `_begins`,
            2147483647L,
            `_at`
        ) as `valid_to`
    from (
        select
            *,
            row_number() over (
                partition by `id`, `_at`
                order by
                    `_commit_version` desc, `_begins` desc
            ) as `_place`
        from (
            select
                *,
                `_change_type` in ('insert', 'update_postimage') as `_begins`,
                max(cast(_commit_version as bigint)) over (
                    partition by `id`
                    order by `_commit_version`
                ) as `_at`
            from golden.customer_changes as `changes`
        ) as `points`
    ) as `last_changes`
    where `_place` = 1
)
