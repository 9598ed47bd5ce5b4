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
                    if(`_stage` = 'delete', `valid_to`, `valid_from`) as at,
                    cast(null as bigint) as position,
                    if(`_stage` = 'update', array_union(cast(array() as array<string>), array('w')), cast(array() as array<string>)) as unmodified,
                    `__evaluated_at` as evaluated_at,
                    `id` as `c_id`,
                    `v` as `c_v`,
                    cast(null as string) as `c_w`,
                    `valid_from` as `c_valid_from`,
                    `valid_to` as `c_valid_to`
                from `staged`
                where `_batch` = 7
        ),

        history as (
            select
                0 as kind,
                stored.`valid_from` as at,
                cast(null as bigint) as position,
                cast(array() as array<string>) as unmodified,
                stored.`id` as `c_id`,
                stored.`v` as `c_v`,
                stored.`w` as `c_w`,
                stored.`valid_from` as `c_valid_from`,
                stored.`valid_to` as `c_valid_to`
            from `golden`.`records` as stored
            left semi join batch
                on stored.`id` = batch.`c_id`
            where (stored.`valid_to` >= 41L or stored.`valid_to` is null)

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
                `c_valid_from`,
                `c_valid_to`
            from batch
        ),

        -- What each row sees around it: E (rule 1), the rows that follow, the stored version at the same place.
        seen as (
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
                last_value(if(kind = 0, struct(at, `c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`), null), true) over (
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
        based as (
            select
                *,
                kind = 0 and (earliest is null or at < earliest) as survives,
                kind = 1 or (
                    kind = 0
                    and (earliest is null or at < earliest)
                    and next_row is not null
                    and coalesce(
                        least(
                            if(coalesce(`c_valid_to` >= 9223372036854775807L, true), null, `c_valid_to`),
                            if(coalesce(`c_valid_to` >= 9223372036854775807L, true) is not null and (next_known is null or next_delete < next_known), next_delete, null)
                        ) >= least(earliest, next_row),
                        true
                    )
                ) as is_base
            from seen
            where kind <> 4
        ),

        -- Chain fill: a column that a row does not bring is the last one brought before it.
        filled as (
            select
                *,
                last_value(
                    if(if(kind = 2, not array_contains(unmodified, 'w'), is_base), named_struct('v', `c_w`), null), true
                ) over axis as `f_w`,
                kind = 2 and not coalesce(max(is_base) over axis, false) as is_skipped
            from based
            window axis as (
                partition by `c_id`
                            order by at, kind = 3, kind, position
                rows between unbounded preceding and current row
            )
        ),

        -- Rule 5: of rows with one identity the last one wins; the next version seals, the next row of the batch cuts.
        placed as (
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
                `c_valid_from` as `c_valid_from`,
                `c_valid_to` as `c_valid_to`
            from filled
        ),

        -- Rule 2 closes and clips at E, rule 6 seals at the next start, rule 6b cuts, rule 7 deletes; rule 8: never where the flag is NULL.
        ended as (
            select
                *,
                coalesce(`c_valid_to` >= 9223372036854775807L, true) is not null as can_close,
                coalesce(next_version.at = at, false) as is_replaced,
                coalesce(kind in (1, 2) and stored.at = at, false) as is_stored,
                if(next_version is null or next_delete < next_version.at, next_delete, null) as deleted_at,
                least(
                    case
                        when survives and earliest is not null and (coalesce(`c_valid_to` >= 9223372036854775807L, true) or (coalesce(next_stored >= earliest, true) and `c_valid_to` >= earliest))
                            then earliest
                        when coalesce(`c_valid_to` >= 9223372036854775807L, true) and next_version is not null then next_version.at
                        else `c_valid_to`
                    end,
                    -- A stored version ends before the rows of the batch, a row of the batch before any version.
                    if(kind = 0, next_begun, next_version.at)
                ) as sealed_end,
                coalesce(`c_valid_to` >= 9223372036854775807L, true) and not (survives and earliest is not null) and next_version is null as stays_open
            from placed
            where kind <> 3
        ),

        final_versions as (
            select
                *,
                if(can_close, if(deleted_at is null, sealed_end, least(sealed_end, deleted_at)), `c_valid_to`) as final_end,
                stays_open and deleted_at is null as is_open
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and coalesce(`c_valid_to` >= 9223372036854775807L, true) as was_open,
                case
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case when not survives then 'remove' when not (final_end <=> `c_valid_to`) then 'close' end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_id` <=> stored.`c_id` and `c_v` <=> stored.`c_v` and `c_w` <=> stored.`c_w` and `c_valid_from` <=> stored.`c_valid_from`) then 'replace'
                    when not (final_end <=> stored.`c_valid_to`) then 'close'
                end as op,
                not is_skipped and not is_replaced and (kind <> 0 or survives) and is_open as is_open,
                at,
                least(stored.`c_valid_to`, final_end) as earlier_end,
                `c_id` as `c_id`,
                `c_v` as `c_v`,
                `c_w` as `c_w`,
                `c_valid_from` as `c_valid_from`,
                final_end as `c_valid_to`
            from final_versions
        )

        select
            op,
            if(op in ('add', 'skip'), null, at) as `match_valid_from`,
            `c_id`,
            `c_v`,
            `c_w`,
            `c_valid_from`,
            `c_valid_to`
        from resolved
        where op is not null
    ) as operations
    on
        (history.`valid_to` >= 41L or history.`valid_to` is null)
        and history.`id` = operations.`c_id`
        and history.`valid_from` = operations.`match_valid_from`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `valid_to` = operations.`c_valid_to`
    when matched and operations.op = 'replace' then update set
        `id` = operations.`c_id`,
        `v` = operations.`c_v`,
        `w` = operations.`c_w`,
        `valid_from` = operations.`c_valid_from`,
        `valid_to` = operations.`c_valid_to`
    when not matched and operations.op = 'add' then insert (
        `id`,
        `v`,
        `w`,
        `valid_from`,
        `valid_to`
    ) values (
        operations.`c_id`,
        operations.`c_v`,
        operations.`c_w`,
        operations.`c_valid_from`,
        operations.`c_valid_to`
    )
    -- An operation that does not find its version must not vanish: nothing is committed then.
    when not matched and operations.op in ('remove', 'close', 'replace') then insert (`valid_to`)
    values (cast(raise_error('dbt_history: a version to change was not found') as bigint))
