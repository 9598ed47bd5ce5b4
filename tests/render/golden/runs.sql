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
                        `_stage` = 'delete',
                        `valid_to`,
                        `valid_from`
                    ) as at,
                    cast(`_order` as bigint)
                        as position,
                    coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)), cast(array() as array<string>)) as unmodified,
                    `__evaluated_at` as evaluated_at,
                    `id` as `c_id`,
                    `v` as `c_v`,
                    `w` as `c_w`,
                    `valid_from` as `c_valid_from`,
                    `valid_to` as `c_valid_to`
                from `staged`
                where `_batch` = 7
        ),

        stored_rows as (
            select
                stored.`valid_from` as at,
                stored.`id` as `c_id`,
                stored.`v` as `c_v`,
                stored.`w` as `c_w`,
                stored.`valid_from` as `c_valid_from`,
                stored.`valid_to` as `c_valid_to`
            from `golden`.`records` as stored
            left semi join batch
                on stored.`id` = batch.`c_id`
            where (stored.`valid_to` >= timestamp'2024-01-01 00:01:00.000000 UTC' or stored.`valid_to` is null)
                and if(
                    typeof(struct(stored.* except (`id`, `v`, `w`, `valid_from`, `valid_to`))) = 'struct<>',
                    true,
                    raise_error('dbt_history: the table has a new column; run the model again')
                )
        ),

        -- A version whose flag is NULL contains no repeat.
        stored_with_container as (
            select
                *,
                last_value(
                    if(
                        ((`c_valid_to` is not null) and `c_valid_to` = at),
                        null,
                        struct(
                            case
                                when (`c_valid_to` is null) is null
                                    then at
                                when (`c_valid_to` is not null) then `c_valid_to`
                            end as ends
                        )
                    ),
                    true
                ) over (
                    partition by `c_id`
                    order by at
                    rows between unbounded preceding and 1 preceding
                ) as container
            from stored_rows
        ),

        stored_repeats as (
            select
                at,
                `c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`,
                ((`c_valid_to` is not null) and `c_valid_to` = at)
                    and container is not null
                    and coalesce(at < container.ends, true) as is_repeat
            from stored_with_container
        ),

        stored_changes as (
            select
                at,
                struct(`c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`) as raw,
                `c_id` as `c_id`,
                if(next.is_repeat, next.`c_v`, run.`c_v`) as `c_v`,
                if(next.is_repeat, next.`c_w`, run.`c_w`) as `c_w`,
                `c_valid_from` as `c_valid_from`,
                if(next.is_repeat, next.at, run.`c_valid_to`) as `c_valid_to`
            from (
                select
                    *,
                    lead(struct(is_repeat, at, `c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`)) over (
                        partition by `c_id` order by at
                    ) as next,
                    last_value(if(is_repeat, null, struct(`c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`)), true) over (
                        partition by `c_id`
                        order by at
                        rows between unbounded preceding and current row
                    ) as run
                from stored_repeats
            ) as neighbours
        ),

        history as (
            select
                0 as kind,
                -1L as batch,
                at,
                cast(null as bigint) as position,
                cast(array() as array<string>) as unmodified,
                raw,
                `c_id`, `c_v`, `c_w`, `c_valid_from`, `c_valid_to`
            from stored_changes

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
                null as raw,
                `c_id`,
                `c_v`,
                `c_w`,
                `c_valid_from`,
                `c_valid_to`
            from batch
        ),

        with_known_ends as (
            select
                history.* except (kind, at),
                points.kind,
                if(points.kind >= 5, `c_valid_to`, at)
                    as at
            from history
            lateral view explode(case
                when history.kind = 0 and coalesce(`c_valid_to` = `c_valid_from` and `c_v` is null and `c_w` is null, false)
                    then array(5)
                when history.kind in (0, 1)
                    and (`c_valid_to` is not null)
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
                array(removed_from is null or at < removed_from)
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
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
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
                or not coalesce(stored_start > `c_valid_from`, false)
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
                    if(kind = 3, struct(at, batch, `c_valid_to` as end_at), null)
                ) ignore nulls over axis as next_delete,
                lead(
                    if(kind in (5, 6) and remains, at, null)
                ) ignore nulls over axis as next_end,
                last_value(if(kind = 0, struct(at, raw.`c_id`, raw.`c_v`, raw.`c_w`, raw.`c_valid_from`, raw.`c_valid_to`), null), true) over (
                    partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
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
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
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
                                    kind = 2 and array_contains(unmodified, 'valid_to') or (`c_valid_to` is null),
                                    null,
                                    `c_valid_to`
                                ),
                                if(
                                    (`c_valid_to` is null) is not null and (next_known is null or next_delete.at < next_known),
                                    next_delete.end_at,
                                    null
                                )
                            ) >= least(next_earliest.at, next_row.at),
                            true
                        )
                        and not coalesce(
                            (`c_valid_to` is null) is not null and next_earliest.at <= next_row.at
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
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
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
                                        when 5 then 0
                                        when 6 then 0
                                        when 7 then 0
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
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                ) as next_begun,
                `c_id` as `c_id`,
                `c_v` as `c_v`,
                `c_w` as `c_w`,
                `c_valid_from` as `c_valid_from`,
                `c_valid_to` as `c_valid_to`
            from filled
        ),

        -- What ends a version: an earliest start of a later batch, a delete, the next version.
        with_ends as (
            select
                *,
                (`c_valid_to` is null) is not null as can_close,
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
                        when deleted.batch < coalesce(ended_from.batch, next_version.batch) then `c_valid_to`
                        when ended_from is not null
                            and (
                                (`c_valid_to` is null)
                                    or (
                                        coalesce(next_stored >= ended_from.at, true)
                                            and `c_valid_to` >= ended_from.at
                                    )
                            )
                            then ended_from.at
                        when (`c_valid_to` is null) and next_version is not null
                            then next_version.at
                        else `c_valid_to`
                    end,
                    -- A stored version ends before staged rows, a staged row before any version.
                    if(kind = 0, next_begun, next_version.at),
                    deleted.end_at,
                    known_end
                ) as new_end,
                (`c_valid_to` is null) and ended_from is null and next_version is null
                    and deleted is null and known_end is null as is_open
            from with_ends
        ),

        final_versions as (
            select
                *,
                if(can_close, new_end, `c_valid_to`) as final_end,
                last_value(
                    if(
                        remains and not is_skipped,
                        struct(
                            kind,
                            if(kind <= 2, if(can_close, new_end, null), `c_valid_to`) as end_at
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
                                            when 5 then 0
                                            when 6 then 0
                                            when 7 then 0
                                            when 3 then 3
                                            else 1
                                        end,
                                        kind, position
                    rows between unbounded preceding and 1 preceding
                ) as before
            from ended
        ),

        with_previous as (
            select
                *,
                kind <= 2 and remains and not is_skipped and not is_replaced
                    as is_version,
                is_open or coalesce(final_end > at, true) as is_not_empty
            from final_versions
        ),

        with_continued as (
            select
                *,
                is_version and can_close and is_not_empty
                    and coalesce(
                        previous.can_close and previous.is_not_empty and not previous.is_open
                            and previous.final_end = at
                            and (`c_v` <=> previous.`c_v`),
                        false
                    ) as continues
            from (
                select
                    *,
                    lag(if(
                        is_version,
                        struct(can_close, is_not_empty, is_open, final_end, `c_v`, `c_w`),
                        null
                    )) ignore nulls over (
                        partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                    ) as previous
                from with_previous
            ) as neighbours
        ),

        with_last as (
            select
                *,
                first_value(
                    if(
                        is_version and not is_continued,
                        struct(is_open, final_end, `c_v`, `c_w`),
                        null
                    ),
                    true
                ) over (
                    partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                    rows between current row and unbounded following
                ) as last
            from (
                select
                    *,
                    coalesce(
                        lead(if(is_version, continues, null)) ignore nulls over (
                            partition by `c_id`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 5 then 0
                                    when 6 then 0
                                    when 7 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                        ),
                        false
                    ) as is_continued
                from with_continued
            ) as neighbours
        ),

        runs as (
            select
                * except (is_open, final_end, is_stored, `c_v`, `c_w`),
                is_stored or kind = 0 as is_stored,
                case
                    when not is_version then is_open
                    when continues then false
                    else last.is_open
                end as is_open,
                case
                    when not is_version then final_end
                    when continues then at
                    else last.final_end
                end as final_end,
                case
                    when not is_version then `c_v`
                    when continues then previous.`c_v`
                    else last.`c_v`
                end as `c_v`,
                case
                    when not is_version then `c_w`
                    when continues then previous.`c_w`
                    else last.`c_w`
                end as `c_w`
            from with_last
        ),

        resolved as (
            select
                kind,
                kind = 0 and (`c_valid_to` is null) as was_open,
                case
                    when kind = 5
                        then if(remains and (
            not coalesce(
                before.end_at = `c_valid_to`
                    and (kind <> 5 or before.kind <> 0),
                false
            )
            and coalesce(`c_valid_to` < if(kind = 5, next_begun, next_version.at), true)
        ), null, 'remove')
                    when kind > 2
                        then if((
            not coalesce(
                before.end_at = `c_valid_to`
                    and (kind <> 5 or before.kind <> 0),
                false
            )
            and coalesce(`c_valid_to` < if(kind = 5, next_begun, next_version.at), true)
        ), 'add', null)
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced and not remains then 'remove'
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_id` <=> stored.`c_id` and `c_v` <=> stored.`c_v` and `c_w` <=> stored.`c_w` and `c_valid_from` <=> stored.`c_valid_from`)
                        then 'replace'
                    when not (final_end <=> stored.`c_valid_to`) then 'close'
                end as op,
                kind <= 2 and not is_skipped and not is_replaced and remains and is_open as is_open,
                if(kind > 2, `c_valid_to`, at) as at,
                least(stored.`c_valid_to`, final_end) as earlier_end,
                `c_id`
                    as `c_id`,
                if(kind <= 2, `c_v`, null)
                    as `c_v`,
                if(kind <= 2, `c_w`, null)
                    as `c_w`,
                if(kind <= 2, `c_valid_from`, `c_valid_to`)
                    as `c_valid_from`,
                if(kind <= 2, final_end, `c_valid_to`)
                    as `c_valid_to`
            from runs
        )

        select
            op,
            if(
                op in ('add', 'skip'),
                null,
                at
            ) as `match_valid_from`,
            `c_id`,
            `c_v`,
            `c_w`,
            `c_valid_from`,
            `c_valid_to`
        from resolved
        where op is not null
    ) as operations
    on
        (history.`valid_to` >= timestamp'2024-01-01 00:01:00.000000 UTC' or history.`valid_to` is null)
        and history.`id` = operations.`c_id`
        and history.`valid_from`
            = operations.`match_valid_from`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `valid_to`
            = operations.`c_valid_to`
    when matched and operations.op = 'replace' then update set
        `id`
            = operations.`c_id`,
        `v`
            = operations.`c_v`,
        `w`
            = operations.`c_w`,
        `valid_from`
            = operations.`c_valid_from`,
        `valid_to`
            = operations.`c_valid_to`
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
    -- If the version of an operation is not found, the statement fails and commits nothing.
    when not matched and operations.op in ('remove', 'close', 'replace')
        then insert (`valid_to`)
    values (
        cast(raise_error('dbt_history: a version to change was not found') as timestamp)
    )
