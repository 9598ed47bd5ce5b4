( /* dbt_history:plain_events {} */
    select
        if(`_begins`, 'upsert', 'delete') as `_stage`,
        * except (
            `_change_type`, `_commit_version`, `_commit_timestamp`, `_begins`, `_at`, `_place`
        ),
        `_at`
            as `_fivetran_start`,
        if(
            `_begins`,
            timestamp'9999-12-31 23:59:59.999 UTC',
            (`_at` - interval 1 millisecond)
        ) as `_fivetran_end`,
        `_begins` as `_fivetran_active`
    from (
        select
            *,
            row_number() over (
                partition by `id`, `end`, `_at`
                order by
                    `_commit_version` desc, `_begins` desc
            ) as `_place`
        from (
            select
                *,
                `_change_type` in ('insert', 'update_postimage') as `_begins`,
                max(cast(_commit_timestamp as timestamp)) over (
                    partition by `id`, `end`
                    order by `_commit_version`
                ) as `_at`
            from (select 1) as `changes`
        ) as `points`
    ) as `last_changes`
    where `_place` = 1
)
