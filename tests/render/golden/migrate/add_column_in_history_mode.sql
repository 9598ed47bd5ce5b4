merge into `golden`.`records` as history
    using (
        select
            'close' as op,
            `_fivetran_start` as match_start,
            `id` as `c_id`,
            `Path` as `c_Path`,
            `state` as `c_state`,
            `_fivetran_start` as `c__fivetran_start`,
            `_fivetran_end` as `c__fivetran_end`,
            `_fivetran_active` as `c__fivetran_active`
        from `golden`.`records`
        where `_fivetran_active` = true and `_fivetran_start` < timestamp'2024-03-03T00:00:00Z' and true
        union all
        select
            'add' as op,
            cast(null as timestamp) as match_start,
            `id` as `c_id`,
            `Path` as `c_Path`,
            cast('new' as string) as `c_state`,
            timestamp'2024-03-03T00:00:00Z' as `c__fivetran_start`,
            `_fivetran_end` as `c__fivetran_end`,
            `_fivetran_active` as `c__fivetran_active`
        from `golden`.`records` as stored
        where `_fivetran_active` = true and `_fivetran_start` < timestamp'2024-03-03T00:00:00Z' and true
            and if(
                typeof(struct(stored.* except (`id`, `Path`, `state`, `_fivetran_start`, `_fivetran_end`, `_fivetran_active`))) = 'struct<>',
                true,
                raise_error('dbt_history: the table has a new column; run the migration again')
            )
        union all
        select
            'change' as op,
            `_fivetran_start` as match_start,
            `id` as `c_id`,
            `Path` as `c_Path`,
            `state` as `c_state`,
            `_fivetran_start` as `c__fivetran_start`,
            `_fivetran_end` as `c__fivetran_end`,
            `_fivetran_active` as `c__fivetran_active`
        from `golden`.`records`
        where `_fivetran_active` = true and `_fivetran_start` = timestamp'2024-03-03T00:00:00Z' and true
        union all
        select distinct
            'change ended' as op,
            `_fivetran_start` as match_start,
            `id` as `c_id`,
            `Path` as `c_Path`,
            null as `c_state`,
            `_fivetran_start` as `c__fivetran_start`,
            `_fivetran_end` as `c__fivetran_end`,
            null as `c__fivetran_active`
        from `golden`.`records`
        where `_fivetran_start` = timestamp'2024-03-03T00:00:00Z' and not coalesce(`_fivetran_active`, false) and not coalesce(`_fivetran_end` = (`_fivetran_start` - interval 1 millisecond) and not `_fivetran_active` and `state` is null, false)
        union all
        select
            'refuse' as op,
            `_fivetran_start` as match_start,
            `id` as `c_id`,
            `Path` as `c_Path`,
            `state` as `c_state`,
            `_fivetran_start` as `c__fivetran_start`,
            `_fivetran_end` as `c__fivetran_end`,
            `_fivetran_active` as `c__fivetran_active`
        from `golden`.`records`
        where `_fivetran_active` = true and `_fivetran_start` > timestamp'2024-03-03T00:00:00Z'
    ) as operations
    on
        coalesce(history.`_fivetran_active`, false) = (operations.op <> 'change ended')
        and (
            operations.op <> 'change ended'
            or history.`_fivetran_end` <=> operations.`c__fivetran_end`
        )
        and history.`_fivetran_start` = operations.match_start
        and history.`ID`
            <=> operations.`c_id`
        and history.`path`
            <=> operations.`c_Path`
    when matched and operations.op = 'close' then update set
        `_fivetran_end` = (timestamp'2024-03-03T00:00:00Z' - interval 1 millisecond),
        `_fivetran_active` = false
    when matched and operations.op in ('change', 'change ended') then update set
        `state` = cast('new' as string)
    when matched and operations.op = 'refuse' then update set
        `_fivetran_end` = cast(
            raise_error('dbt_history: an active version starts after the migration') as timestamp
        )
    when not matched and operations.op = 'add' then insert (
        `id`,
        `Path`,
        `state`,
        `_fivetran_start`,
        `_fivetran_end`,
        `_fivetran_active`
    ) values (
        operations.`c_id`,
        operations.`c_Path`,
        operations.`c_state`,
        operations.`c__fivetran_start`,
        operations.`c__fivetran_end`,
        operations.`c__fivetran_active`
    )
    -- An operation that does not match its version raises an error: nothing is committed.
    when not matched then insert (`_fivetran_end`)
    values (cast(raise_error('dbt_history: a version to change was not found') as timestamp))
