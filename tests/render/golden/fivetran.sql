merge into `golden`.`records` as history
    using (
        with batch as (
            select
                    `_batch` as batch,
                    case `_stage`
                        when 'upsert' then 1
                        when 'replace' then 1
                        when 'update' then 2
                        when 'delete' then 3
                        when 'earliest_start' then 4
                    end as kind,
                    if(`_stage` = 'delete', `_fivetran_end`, `_fivetran_start`) as at,
                    cast(`_order` as bigint) as position,
                    coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)), cast(array() as array<string>)) as unmodified,
                    `__evaluated_at` as evaluated_at,
                    `id` as `c_id`,
                    `v` as `c_v`,
                    `w` as `c_w`,
                    `_fivetran_start` as `c__fivetran_start`,
                    `_fivetran_end` as `c__fivetran_end`,
                    `_fivetran_active` as `c__fivetran_active`
                from `staged`
                where `_batch` = 7
        ),

        history as (
            select
                0 as kind,
                stored.`_fivetran_start` as at,
                cast(null as bigint) as position,
                cast(array() as array<string>) as unmodified,
                stored.`id` as `c_id`,
                stored.`v` as `c_v`,
                stored.`w` as `c_w`,
                stored.`_fivetran_start` as `c__fivetran_start`,
                stored.`_fivetran_end` as `c__fivetran_end`,
                stored.`_fivetran_active` as `c__fivetran_active`
            from `golden`.`records` as stored
            left semi join batch
                on stored.`id` = batch.`c_id`
            where (stored.`_fivetran_end` >= timestamp'2024-01-01 00:00:59.999000 UTC' or stored.`_fivetran_end` is null)

            union all

            -- A SELECT that was evaluated again since the plan must not be applied.
            select
                if(evaluated_at <= 0L, kind, raise_error('dbt_history: evaluated again')) as kind,
                at,
                position,
                unmodified,
                `c_id`,
                `c_v`,
                `c_w`,
                `c__fivetran_start`,
                `c__fivetran_end`,
                `c__fivetran_active`
            from batch
        ),

        -- What each row sees around it: E (rule 1), the rows that follow, the stored version at the same place.
        with_neighbours as (
            select
                *,
                min(if(kind = 4, at, null)) over (
                    partition by `c_id`
                            order by at, kind = 3, kind, position
                    rows between unbounded preceding and unbounded following
                ) as earliest,
                lead(if(kind in (1, 2), at, null)) ignore nulls over axis as next_row,
                lead(if(kind <= 2, at, null)) ignore nulls over axis as next_known,
                lead(if(kind = 3, at, null)) ignore nulls over axis as next_delete,
                lead(if(kind = 0, at, null)) ignore nulls over axis as next_stored,
                last_value(if(kind = 0, struct(at, `c_id`, `c_v`, `c_w`, `c__fivetran_start`, `c__fivetran_end`, `c__fivetran_active`), null), true) over (
                    partition by `c_id`
                            order by at, kind = 3, kind, position
                    rows between unbounded preceding and current row
                ) as stored
            from history
            window axis as (
                partition by `c_id`
                            order by at, kind = 3, kind, position
            )
        ),

        -- Rule 3: a survivor is a base if it lasted, this batch's deletes included, until the first row of the batch after it.
        with_bases as (
            select
                *,
                kind = 0 and (earliest is null or at < earliest) as survives,
                kind = 1 or (
                    kind = 0
                    and (earliest is null or at < earliest)
                    and next_row is not null
                    and coalesce(
                        least(
                            if(coalesce(`c__fivetran_active`, false), null, `c__fivetran_end`),
                            if(`c__fivetran_active` is not null and (next_known is null or next_delete < next_known), next_delete, null)
                        ) >= (least(earliest, next_row) - interval 1 millisecond),
                        true
                    )
                ) as is_base
            from with_neighbours
            where kind <> 4
        ),

        -- Chain fill: a column that a row does not bring is the last one brought before it.
        filled as (
            select
                *,
                last_value(
                    if(if(kind = 2, not array_contains(unmodified, 'w'), is_base), named_struct('v', `c_w`), null), true
                ) over axis as `f_w`,
                last_value(
                    if(
                        if(kind = 2, not array_contains(unmodified, '_fivetran_end'), is_base),
                        named_struct('v', if(coalesce(`c__fivetran_active`, false), `c__fivetran_end`, timestamp'9999-12-31 23:59:59.999 UTC')),
                        null
                    ),
                    true
                ) over axis as open_end,
                kind = 2 and not coalesce(max(is_base) over axis, false) as is_skipped
            from with_bases
            window axis as (
                partition by `c_id`
                            order by at, kind = 3, kind, position
                rows between unbounded preceding and current row
            )
        ),

        -- Rule 5: of rows with one identity the last one wins; the next version seals, the next row of the batch cuts.
        with_next_version as (
            select
                kind,
                at,
                earliest,
                survives,
                is_skipped,
                stored,
                next_delete,
                next_stored,
                lead(if(survives or (kind in (1, 2) and not is_skipped), struct(at), null)) ignore nulls
                    over (
                        partition by `c_id`
                                order by at, kind = 3, kind, position
                    ) as next_version,
                lead(if(kind in (1, 2) and not is_skipped, at, null)) ignore nulls over (
                    partition by `c_id`
                            order by at, kind = 3, kind, position
                ) as next_begun,
                `c_id` as `c_id`,
                `c_v` as `c_v`,
                if(kind = 2 and array_contains(unmodified, 'w'), `f_w`.v, `c_w`) as `c_w`,
                `c__fivetran_start` as `c__fivetran_start`,
                if(kind = 2 and array_contains(unmodified, '_fivetran_end'), if(open_end is null, timestamp'9999-12-31 23:59:59.999 UTC', open_end.v), `c__fivetran_end`) as `c__fivetran_end`,
                `c__fivetran_active` as `c__fivetran_active`
            from filled
        ),

        -- Rule 2 closes and clips at E, rule 6 seals at the next start, rule 6b cuts, rule 7 deletes; rule 8: never where the flag is NULL.
        ended as (
            select
                *,
                `c__fivetran_active` is not null as can_close,
                coalesce(next_version.at = at, false) as is_replaced,
                coalesce(kind in (1, 2) and stored.at = at, false) as is_stored,
                if(next_version is null or next_delete < next_version.at, next_delete, null) as deleted_at,
                least(
                    case
                        when survives and earliest is not null and (coalesce(`c__fivetran_active`, false) or (coalesce(next_stored >= earliest, true) and `c__fivetran_end` >= earliest))
                            then (earliest - interval 1 millisecond)
                        when coalesce(`c__fivetran_active`, false) and next_version is not null then (next_version.at - interval 1 millisecond)
                        else `c__fivetran_end`
                    end,
                    -- A stored version ends before the rows of the batch, a row of the batch before any version.
                    (if(kind = 0, next_begun, next_version.at) - interval 1 millisecond)
                ) as sealed_end,
                coalesce(`c__fivetran_active`, false) and not (survives and earliest is not null) and next_version is null as stays_open
            from with_next_version
            where kind <> 3
        ),

        final_versions as (
            select
                *,
                if(can_close, if(deleted_at is null, sealed_end, least(sealed_end, deleted_at)), `c__fivetran_end`) as final_end,
                stays_open and deleted_at is null as is_open
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and coalesce(`c__fivetran_active`, false) as was_open,
                case
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case when not survives then 'remove' when not (final_end <=> `c__fivetran_end`) or not (if(can_close, is_open, `c__fivetran_active`) <=> `c__fivetran_active`) then 'close' end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_id` <=> stored.`c_id` and `c_v` <=> stored.`c_v` and `c_w` <=> stored.`c_w` and `c__fivetran_start` <=> stored.`c__fivetran_start`) then 'replace'
                    when not (final_end <=> stored.`c__fivetran_end`) or not (if(can_close, is_open, `c__fivetran_active`) <=> stored.`c__fivetran_active`) then 'close'
                end as op,
                not is_skipped and not is_replaced and (kind <> 0 or survives) and is_open as is_open,
                at,
                least(stored.`c__fivetran_end`, final_end) as earlier_end,
                `c_id` as `c_id`,
                `c_v` as `c_v`,
                `c_w` as `c_w`,
                `c__fivetran_start` as `c__fivetran_start`,
                final_end as `c__fivetran_end`,
                if(can_close, is_open, `c__fivetran_active`) as `c__fivetran_active`
            from final_versions
        )

        select
            op,
            if(op in ('add', 'skip'), null, at) as `match__fivetran_start`,
            `c_id`,
            `c_v`,
            `c_w`,
            `c__fivetran_start`,
            `c__fivetran_end`,
            `c__fivetran_active`
        from resolved
        where op is not null
    ) as operations
    on
        (history.`_fivetran_end` >= timestamp'2024-01-01 00:00:59.999000 UTC' or history.`_fivetran_end` is null)
        and history.`id` = operations.`c_id`
        and history.`_fivetran_start` = operations.`match__fivetran_start`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `_fivetran_end` = operations.`c__fivetran_end`,
        `_fivetran_active` = operations.`c__fivetran_active`
    when matched and operations.op = 'replace' then update set
        `id` = operations.`c_id`,
        `v` = operations.`c_v`,
        `w` = operations.`c_w`,
        `_fivetran_start` = operations.`c__fivetran_start`,
        `_fivetran_end` = operations.`c__fivetran_end`,
        `_fivetran_active` = operations.`c__fivetran_active`
    when not matched and operations.op = 'add' then insert (
        `id`,
        `v`,
        `w`,
        `_fivetran_start`,
        `_fivetran_end`,
        `_fivetran_active`
    ) values (
        operations.`c_id`,
        operations.`c_v`,
        operations.`c_w`,
        operations.`c__fivetran_start`,
        operations.`c__fivetran_end`,
        operations.`c__fivetran_active`
    )
    -- An operation that does not find its version must not vanish: nothing is committed then.
    when not matched and operations.op in ('remove', 'close', 'replace') then insert (`_fivetran_end`)
    values (cast(raise_error('dbt_history: a version to change was not found') as timestamp))
