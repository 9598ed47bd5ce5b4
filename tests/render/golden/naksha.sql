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
                    if(`_stage` = 'delete', `txn_next`, `txn`) as at,
                    cast(`_order` as bigint) as position,
                    coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)), cast(array() as array<string>)) as unmodified,
                    `__evaluated_at` as evaluated_at,
                    `id` as `c_id`,
                    `i` as `c_i`,
                    `tags` as `c_tags`,
                    `txn` as `c_txn`,
                    `txn_next` as `c_txn_next`
                from `staged`
                where `_batch` = 7
        ),

        history as (
            select
                0 as kind,
                stored.`txn` as at,
                cast(null as bigint) as position,
                cast(array() as array<string>) as unmodified,
                stored.`id` as `c_id`,
                stored.`i` as `c_i`,
                stored.`tags` as `c_tags`,
                stored.`txn` as `c_txn`,
                stored.`txn_next` as `c_txn_next`
            from `golden`.`records` as stored
            left semi join batch
                on stored.`id` = batch.`c_id`
            where (stored.`txn_next` >= 41L or stored.`txn_next` is null)

            union all

            -- A SELECT that was evaluated again since the plan must not be applied.
            select
                if(evaluated_at <= 0L, kind, raise_error('dbt_history: evaluated again')) as kind,
                at,
                position,
                unmodified,
                `c_id`,
                `c_i`,
                `c_tags`,
                `c_txn`,
                `c_txn_next`
            from batch
        ),

        -- What each row sees around it: E (rule 1), the rows that follow, the stored version at the same place.
        seen as (
            select
                *,
                min(if(kind = 4, at, null)) over (
                    partition by `c_id`
                            order by at, kind = 3, `c_i`, kind, position
                    rows between unbounded preceding and unbounded following
                ) as earliest,
                lead(if(kind in (1, 2), at, null)) ignore nulls over axis as next_row,
                lead(if(kind <= 2, at, null)) ignore nulls over axis as next_known,
                lead(if(kind = 3, at, null)) ignore nulls over axis as next_delete,
                lead(if(kind = 0, at, null)) ignore nulls over axis as next_stored,
                last_value(if(kind = 0, struct(at, `c_id`, `c_i`, `c_tags`, `c_txn`, `c_txn_next`), null), true) over (
                    partition by `c_id`
                            order by at, kind = 3, `c_i`, kind, position
                    rows between unbounded preceding and current row
                ) as stored
            from history
            window axis as (
                partition by `c_id`
                            order by at, kind = 3, `c_i`, kind, position
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
                            if((`c_txn_next` is null), null, `c_txn_next`),
                            if((`c_txn_next` is null) is not null and (next_known is null or next_delete < next_known), next_delete, null)
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
                    if(if(kind = 2, not array_contains(unmodified, 'tags'), is_base), named_struct('v', `c_tags`), null), true
                ) over axis as `f_tags`,
                kind = 2 and not coalesce(max(is_base) over axis, false) as is_skipped
            from based
            window axis as (
                partition by `c_id`
                            order by at, kind = 3, `c_i`, kind, position
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
                lead(if(survives or (kind in (1, 2) and not is_skipped), struct(at, `c_i` as id), null)) ignore nulls
                    over (
                        partition by `c_id`
                                order by at, kind = 3, `c_i`, kind, position
                    ) as next_version,
                lead(if(kind in (1, 2) and not is_skipped, at, null)) ignore nulls over (
                    partition by `c_id`
                            order by at, kind = 3, `c_i`, kind, position
                ) as next_begun,
                `c_id` as `c_id`,
                `c_i` as `c_i`,
                if(kind = 2 and array_contains(unmodified, 'tags'), `f_tags`.v, `c_tags`) as `c_tags`,
                `c_txn` as `c_txn`,
                `c_txn_next` as `c_txn_next`
            from filled
        ),

        -- Rule 2 closes and clips at E, rule 6 seals at the next start, rule 6b cuts, rule 7 deletes; rule 8: never where the flag is NULL.
        ended as (
            select
                *,
                (`c_txn_next` is null) is not null as can_close,
                coalesce(next_version.at = at and next_version.id <=> `c_i`, false) as is_replaced,
                coalesce(kind in (1, 2) and stored.at = at and stored.`c_i` <=> `c_i`, false) as is_stored,
                if(next_version is null or next_delete < next_version.at, next_delete, null) as deleted_at,
                least(
                    case
                        when survives and earliest is not null and ((`c_txn_next` is null) or (coalesce(next_stored >= earliest, true) and `c_txn_next` >= earliest))
                            then earliest
                        when (`c_txn_next` is null) and next_version is not null then next_version.at
                        else `c_txn_next`
                    end,
                    -- A stored version ends before the rows of the batch, a row of the batch before any version.
                    if(kind = 0, next_begun, next_version.at)
                ) as sealed_end,
                (`c_txn_next` is null) and not (survives and earliest is not null) and next_version is null as stays_open
            from placed
            where kind <> 3
        ),

        final_versions as (
            select
                *,
                if(can_close, if(deleted_at is null, sealed_end, least(sealed_end, deleted_at)), `c_txn_next`) as final_end,
                stays_open and deleted_at is null as is_open
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and (`c_txn_next` is null) as was_open,
                case
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case when not survives then 'remove' when not (final_end <=> `c_txn_next`) then 'close' end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_id` <=> stored.`c_id` and `c_i` <=> stored.`c_i` and array_sort(transform(map_entries(`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) <=> array_sort(transform(map_entries(stored.`c_tags`), item0 -> struct(item0.key as key, item0.value as value))) and `c_txn` <=> stored.`c_txn`) then 'replace'
                    when not (final_end <=> stored.`c_txn_next`) then 'close'
                end as op,
                not is_skipped and not is_replaced and (kind <> 0 or survives) and is_open as is_open,
                at,
                least(stored.`c_txn_next`, final_end) as earlier_end,
                `c_id` as `c_id`,
                `c_i` as `c_i`,
                `c_tags` as `c_tags`,
                `c_txn` as `c_txn`,
                final_end as `c_txn_next`
            from final_versions
        )

        select
            op,
            if(op in ('add', 'skip'), null, at) as `match_txn`,
            if(op in ('add', 'skip'), null, `c_i`) as `match_i`,
            `c_id`,
            `c_i`,
            `c_tags`,
            `c_txn`,
            `c_txn_next`
        from resolved
        where op is not null
    ) as operations
    on
        (history.`txn_next` >= 41L or history.`txn_next` is null)
        and history.`id` = operations.`c_id`
        and history.`txn` = operations.`match_txn`
        and history.`i` = operations.`match_i`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `txn_next` = operations.`c_txn_next`
    when matched and operations.op = 'replace' then update set
        `id` = operations.`c_id`,
        `i` = operations.`c_i`,
        `tags` = operations.`c_tags`,
        `txn` = operations.`c_txn`,
        `txn_next` = operations.`c_txn_next`
    when not matched and operations.op = 'add' then insert (
        `id`,
        `i`,
        `tags`,
        `txn`,
        `txn_next`
    ) values (
        operations.`c_id`,
        operations.`c_i`,
        operations.`c_tags`,
        operations.`c_txn`,
        operations.`c_txn_next`
    )
    -- An operation that does not find its version must not vanish: nothing is committed then.
    when not matched and operations.op in ('remove', 'close', 'replace') then insert (`txn_next`)
    values (cast(raise_error('dbt_history: a version to change was not found') as bigint))
