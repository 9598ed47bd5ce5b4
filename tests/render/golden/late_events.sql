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
                    if(
                        `_stage` = 'delete'
                            and not coalesce(`_fivetran_start` = (`_fivetran_end` + interval 1 millisecond), false),
                        `_fivetran_end`,
                        `_fivetran_start`
                    ) as at,
                    cast(`_order` as bigint)
                        as position,
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
                -1L as batch,
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
                and if(
                    typeof(struct(stored.* except (`id`, `v`, `w`, `_fivetran_start`, `_fivetran_end`, `_fivetran_active`))) = 'struct<>',
                    true,
                    raise_error('dbt_history: the table has a new column; run the model again')
                )

            union all

            -- A SELECT that was evaluated again since the plan must not be applied.
            select
                if(
                    evaluated_at <= 0L,
                    kind,
                    raise_error('dbt_history: evaluated again')
                ) as kind,
                coalesce(batch, 0L) as batch,
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

        with_known_ends as (
            select
                history.* except (kind, at),
                points.kind,
                if(points.kind >= 5, `c__fivetran_end`, at)
                    as at
            from history
            lateral view explode(case
                when history.kind = 0 and coalesce(`c__fivetran_end` = (`c__fivetran_start` - interval 1 millisecond) and not `c__fivetran_active` and `c_v` is null and `c_w` is null, false)
                    then array(5)
                when history.kind in (0, 1)
                    and (coalesce(`c__fivetran_end` < timestamp'9999-12-31 23:59:59.999 UTC', false) and not coalesce(`c__fivetran_active`, true))
                    then array(history.kind, 6)
                when history.kind = 3
                    then array(3, 7)
                else array(history.kind)
            end) points as kind
        ),

        -- Rule 1: the first earliest start after the row's own batch. Of the same batch only the first
        -- stays.
        reached as (
            select
                *,
                min(if(kind = 4, at, null)) over (
                    partition by `c_id`
                    order by batch desc, kind = 4 asc, at asc
                    rows between unbounded preceding and 1 preceding
                ) as removed_from
            from with_known_ends
        ),

        -- The generator keeps the optimizer from copying the condition into every expression that uses it.
        remaining as (
            select
                reached.*,
                flags.remains
            from reached
            lateral view explode(
                array(removed_from is null or if(kind >= 5, (at + interval 1 millisecond), at) < removed_from)
            ) flags as remains
            where reached.kind in (0, 5) or flags.remains
        ),

        with_stored_starts as (
            select
                *,
                last_value(if(kind = 0 and remains, at, null), true) over (
                    partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 2
                                    when 6 then 2
                                    when 7 then 2
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                    rows between unbounded preceding and current row
                ) as stored_start
            from remaining
        ),

        with_valid_ends as (
            select *
            from with_stored_starts
            where kind <> 6
                or not coalesce(stored_start > `c__fivetran_start`, false)
        ),

        with_neighbours as (
            select
                *,
                lead(
                    if(kind in (1, 2), struct(at, batch), null)
                ) ignore nulls over axis as next_row,
                lead(if(kind <= 2 and remains, at, null)) ignore nulls over axis
                    as next_known,
                lead(if(kind = 4, struct(at, batch), null)) ignore nulls over axis
                    as next_earliest,
                lead(if(kind = 0 and remains, at, null)) ignore nulls over axis
                    as next_stored,
                lead(
                    if(kind = 3, struct(at, batch, `c__fivetran_end` as end_at), null)
                ) ignore nulls over axis as next_delete,
                lead(
                    if(kind in (5, 6) and remains, at, null)
                ) ignore nulls over axis as next_end,
                last_value(if(kind = 0, struct(at, `c_id`, `c_v`, `c_w`, `c__fivetran_start`, `c__fivetran_end`, `c__fivetran_active`), null), true) over (
                    partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 2
                                    when 6 then 2
                                    when 7 then 2
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                    rows between unbounded preceding and current row
                ) as stored
            from with_valid_ends
            window axis as (
                partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 2
                                    when 6 then 2
                                    when 7 then 2
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
            )
        ),

        with_bases as (
            select
                *,
                case
                    when kind = 0 and (not remains or next_row is null) then null
                    when kind <= 2 and next_row.batch > batch and not (
                        coalesce(
                            least(
                                if(
                                    kind = 2 and array_contains(unmodified, '_fivetran_end') or coalesce(`c__fivetran_active`, false),
                                    null,
                                    `c__fivetran_end`
                                ),
                                if(
                                    `c__fivetran_active` is not null and (next_known is null or next_delete.at < next_known),
                                    next_delete.end_at,
                                    null
                                )
                            ) >= (least(next_earliest.at, next_row.at) - interval 1 millisecond),
                            true
                        )
                        and not coalesce(
                            `c__fivetran_active` is not null and next_earliest.at <= next_row.at
                                and next_earliest.batch < next_row.batch,
                            false
                        )
                    )
                        then if(kind = 0, null, false)
                    when kind in (
                        0,
                        1
                    )
                        then true
                end as base_state,
                coalesce(
                    next_delete.batch < next_row.batch and next_delete.at < next_row.at, false
                ) as is_deleted_before
            from with_neighbours
            where kind <> 4
        ),

        -- Chain fill: a column that a row does not supply has the last value supplied before it.
        filled as (
            select
                *,
                kind = 2
                    and not coalesce(last_value(base_state, true) over axis, false) as is_skipped
            from with_bases
            window axis as (
                partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 2
                                    when 6 then 2
                                    when 7 then 2
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                rows between unbounded preceding and 1 preceding
            )
        ),

        -- Rule 5: of rows with one identity the last one counts.
        with_next_version as (
            select
                kind,
                batch,
                at,
                remains,
                is_skipped,
                stored,
                next_earliest,
                next_delete,
                next_stored,
                position,
                next_end,
                lead(
                    if(
                        remains and not is_skipped and kind <= 2,
                        struct(at, batch),
                        null
                    )
                ) ignore nulls
                    over (
                        partition by `c_id`
                                order by
                                    at,
                                    case kind
                                        when 4 then 0
                                        when 5 then 2
                                        when 6 then 2
                                        when 7 then 2
                                        when 3 then 3
                                        else 1
                                    end,
                                    kind, position
                    ) as next_version,
                lead(
                    if(
                        kind in (1, 2) and not is_skipped,
                        at,
                        null
                    )
                ) ignore nulls over (
                    partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 2
                                    when 6 then 2
                                    when 7 then 2
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                ) as next_begun,
                `c_id` as `c_id`,
                `c_v` as `c_v`,
                `c_w` as `c_w`,
                `c__fivetran_start` as `c__fivetran_start`,
                `c__fivetran_end` as `c__fivetran_end`,
                `c__fivetran_active` as `c__fivetran_active`
            from filled
        ),

        -- What ends a version: an earliest start of a later batch, a delete, the next version.
        with_ends as (
            select
                *,
                `c__fivetran_active` is not null as can_close,
                coalesce(
                    next_version.at = at, false
                ) as is_replaced,
                coalesce(
                    kind in (1, 2)
                        and stored.at = at,
                    false
                ) as is_stored,
                if(remains and next_earliest.batch > batch, next_earliest, null) as ended_from,
                if(next_version is null or next_delete.at < next_version.at, next_delete, null) as deleted,
                if(
                    kind in (1, 2)
                        and (next_version is null or next_end < next_version.at),
                    next_end,
                    null
                ) as known_end
            from with_next_version
            where kind <> 3
        ),

        -- Rules 2, 6, 6b and 7 in the order of their batches; rule 8: none of them where the flag is NULL.
        ended as (
            select
                *,
                least(
                    case
                        when deleted.batch < coalesce(ended_from.batch, next_version.batch) then `c__fivetran_end`
                        when ended_from is not null
                            and (
                                coalesce(`c__fivetran_active`, false)
                                    or (
                                        coalesce(next_stored >= ended_from.at, true)
                                            and `c__fivetran_end` >= ended_from.at
                                    )
                            )
                            then (ended_from.at - interval 1 millisecond)
                        when coalesce(`c__fivetran_active`, false) and next_version is not null
                            then (next_version.at - interval 1 millisecond)
                        else `c__fivetran_end`
                    end,
                    -- A stored version ends before staged rows, a staged row before any version.
                    (if(kind = 0, next_begun, next_version.at) - interval 1 millisecond),
                    deleted.end_at,
                    known_end
                ) as new_end,
                coalesce(`c__fivetran_active`, false) and ended_from is null and next_version is null
                    and deleted is null and known_end is null as is_open
            from with_ends
        ),

        final_versions as (
            select
                *,
                if(can_close, new_end, `c__fivetran_end`) as final_end,
                last_value(
                    if(
                        remains and not is_skipped,
                        struct(
                            kind,
                            if(kind <= 2, if(can_close, new_end, null), `c__fivetran_end`) as end_at
                        ),
                        null
                    ),
                    true
                ) over (
                    partition by `c_id`
                                    order by
                                        at,
                                        case kind
                                            when 4 then 0
                                            when 5 then 2
                                            when 6 then 2
                                            when 7 then 2
                                            when 3 then 3
                                            else 1
                                        end,
                                        kind, position
                    rows between unbounded preceding and 1 preceding
                ) as before
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and coalesce(`c__fivetran_active`, false) as was_open,
                case
                    when kind = 5
                        then if(remains and (
            not coalesce(
                before.end_at = `c__fivetran_end`
                    and (kind <> 5 or before.kind <> 0),
                false
            )
            and coalesce(`c__fivetran_end` < (if(kind = 5, next_begun, next_version.at) - interval 1 millisecond), true)
        ), null, 'remove')
                    when kind > 2
                        then if((
            not coalesce(
                before.end_at = `c__fivetran_end`
                    and (kind <> 5 or before.kind <> 0),
                false
            )
            and coalesce(`c__fivetran_end` < (if(kind = 5, next_begun, next_version.at) - interval 1 millisecond), true)
        ), 'add', null)
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case
                            when not remains then 'remove'
                            when not (final_end <=> `c__fivetran_end`) or not (if(can_close, is_open, `c__fivetran_active`) <=> `c__fivetran_active`) then 'close'
                        end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_id` <=> stored.`c_id` and `c_v` <=> stored.`c_v` and `c_w` <=> stored.`c_w` and `c__fivetran_start` <=> stored.`c__fivetran_start`)
                        then 'replace'
                    when not (final_end <=> stored.`c__fivetran_end`) or not (if(can_close, is_open, `c__fivetran_active`) <=> stored.`c__fivetran_active`) then 'close'
                end as op,
                kind <= 2 and not is_skipped and not is_replaced and remains and is_open as is_open,
                if(kind > 2, (`c__fivetran_end` + interval 1 millisecond), at) as at,
                least(stored.`c__fivetran_end`, final_end) as earlier_end,
                `c_id`
                    as `c_id`,
                if(kind <= 2, `c_v`, null)
                    as `c_v`,
                if(kind <= 2, `c_w`, null)
                    as `c_w`,
                if(kind <= 2, `c__fivetran_start`, (`c__fivetran_end` + interval 1 millisecond))
                    as `c__fivetran_start`,
                if(kind <= 2, final_end, `c__fivetran_end`)
                    as `c__fivetran_end`,
                if(kind <= 2, if(can_close, is_open, `c__fivetran_active`), false)
                    as `c__fivetran_active`
            from final_versions
        )

        select
            op,
            if(
                op in ('add', 'skip'),
                null,
                at
            ) as `match__fivetran_start`,
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
        and history.`_fivetran_start`
            = operations.`match__fivetran_start`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `_fivetran_end`
            = operations.`c__fivetran_end`,
        `_fivetran_active`
            = operations.`c__fivetran_active`
    when matched and operations.op = 'replace' then update set
        `id`
            = operations.`c_id`,
        `v`
            = operations.`c_v`,
        `w`
            = operations.`c_w`,
        `_fivetran_start`
            = operations.`c__fivetran_start`,
        `_fivetran_end`
            = operations.`c__fivetran_end`,
        `_fivetran_active`
            = operations.`c__fivetran_active`
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
    -- If the version of an operation is not found, the statement fails and commits nothing.
    when not matched and operations.op in ('remove', 'close', 'replace')
        then insert (`_fivetran_end`)
    values (
        cast(raise_error('dbt_history: a version to change was not found') as timestamp)
    )
