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
                        `end`,
                        `start`
                    ) as at,
                    cast(`_order` as bigint)
                        as position,
                    coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)), cast(array() as array<string>)) as unmodified,
                    `__evaluated_at` as evaluated_at,
                    `MY KEY` as `c_My Key`,
                    `path` as `c_path`,
                    cast(`select` as bigint) as `c_select`,
                    `it's` as `c_it's`,
                    `start` as `c_start`,
                    `end` as `c_end`,
                    `Is ``Current``` as `c_Is ``Current```
                from `staged`
                where `_batch` = 7
        ),

        history as (
            select
                0 as kind,
                -1L as batch,
                stored.`start` as at,
                cast(null as bigint) as position,
                cast(array() as array<string>) as unmodified,
                stored.`My Key` as `c_My Key`,
                stored.`path` as `c_path`,
                stored.`select` as `c_select`,
                stored.`it's` as `c_it's`,
                stored.`start` as `c_start`,
                stored.`end` as `c_end`,
                stored.`Is ``Current``` as `c_Is ``Current```
            from `golden`.`records` as stored
            left semi join batch
                on stored.`My Key` = batch.`c_My Key`
                and stored.`path` = batch.`c_path`
            where (stored.`end` >= date'2023-12-31' or stored.`end` is null)
                and if(
                    typeof(struct(stored.* except (`My Key`, `path`, `select`, `it's`, `start`, `end`, `Is ``Current```))) = 'struct<>',
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
                `c_My Key`,
                `c_path`,
                `c_select`,
                `c_it's`,
                `c_start`,
                `c_end`,
                `c_Is ``Current```
            from batch
        ),

        -- Rule 1: the first earliest start after the row's own batch. Of the same batch only the first
        -- stays.
        reached as (
            select
                *,
                min(if(kind = 4, at, null)) over (
                    partition by `c_My Key`, `c_path`
                    order by batch desc, kind = 4 asc, at asc
                    rows between unbounded preceding and 1 preceding
                ) as removed_from
            from history
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
            where reached.kind = 0 or flags.remains
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
                    if(kind = 3, struct(at, batch, `c_end` as end_at), null)
                ) ignore nulls over axis as next_delete,
                last_value(if(kind = 0, struct(at, `c_My Key`, `c_path`, `c_select`, `c_it's`, `c_start`, `c_end`, `c_Is ``Current```), null), true) over (
                    partition by `c_My Key`, `c_path`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                    rows between unbounded preceding and current row
                ) as stored
            from remaining
            window axis as (
                partition by `c_My Key`, `c_path`
                            order by
                                at,
                                case kind
                                    when 4 then 0
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
                                    kind = 2 and array_contains(unmodified, 'end') or ((kind = 2 and array_contains(unmodified, 'is `current`')) or coalesce(`c_Is ``Current```, false)),
                                    null,
                                    `c_end`
                                ),
                                if(
                                    (`c_Is ``Current``` is not null or kind = 2 and array_contains(unmodified, 'is `current`')) and (next_known is null or next_delete.at < next_known),
                                    next_delete.end_at,
                                    null
                                )
                            ) >= date_sub(least(next_earliest.at, next_row.at), 1),
                            true
                        )
                        and not coalesce(
                            (`c_Is ``Current``` is not null or kind = 2 and array_contains(unmodified, 'is `current`')) and next_earliest.at <= next_row.at
                                and next_earliest.batch < next_row.batch,
                            false
                        )
                    )
                        then if(kind = 0, null, false)
                    when kind in (
                        0,
                        1, 2
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
                last_value(
                    if(
                        not base_state or if(kind = 2, not array_contains(unmodified, 'select'), base_state),
                        named_struct('v', if(base_state is false, null, `c_select`)),
                        null
                    ),
                    true
                ) over axis as `f_select`,
                last_value(
                    if(
                        not base_state or if(kind = 2, not array_contains(unmodified, 'it\'s'), base_state),
                        named_struct('v', if(base_state is false, null, `c_it's`)),
                        null
                    ),
                    true
                ) over axis as `f_it's`,
                last_value(
                    if(
                        not base_state or if(kind = 2, not array_contains(unmodified, 'end'), base_state),
                        named_struct('v', if(
                            base_state is not false and not is_deleted_before
                                and ((kind = 2 and array_contains(unmodified, 'is `current`')) or coalesce(`c_Is ``Current```, false)),
                            `c_end`,
                            date'9999-12-31'
                        )),
                        null
                    ),
                    true
                ) over axis as open_end,
                false as is_skipped
            from with_bases
            window axis as (
                partition by `c_My Key`, `c_path`
                            order by
                                at,
                                case kind
                                    when 4 then 0
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
                lead(
                    if(
                        remains and not is_skipped and kind <= 2,
                        struct(at, batch),
                        null
                    )
                ) ignore nulls
                    over (
                        partition by `c_My Key`, `c_path`
                                order by
                                    at,
                                    case kind
                                        when 4 then 0
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
                    partition by `c_My Key`, `c_path`
                            order by
                                at,
                                case kind
                                    when 4 then 0
                                    when 3 then 3
                                    else 1
                                end,
                                kind, position
                ) as next_begun,
                `c_My Key` as `c_My Key`,
                `c_path` as `c_path`,
                if(kind = 2 and array_contains(unmodified, 'select'), `f_select`.v, `c_select`) as `c_select`,
                if(kind = 2 and array_contains(unmodified, 'it\'s'), `f_it's`.v, `c_it's`) as `c_it's`,
                `c_start` as `c_start`,
                if(kind = 2 and array_contains(unmodified, 'end'), if(open_end is null, date'9999-12-31', open_end.v), `c_end`) as `c_end`,
                if(kind = 2 and array_contains(unmodified, 'is `current`'), true, `c_Is ``Current```) as `c_Is ``Current```
            from filled
        ),

        -- What ends a version: an earliest start of a later batch, a delete, the next version.
        with_ends as (
            select
                *,
                `c_Is ``Current``` is not null as can_close,
                coalesce(
                    next_version.at = at, false
                ) as is_replaced,
                coalesce(
                    kind in (1, 2)
                        and stored.at = at,
                    false
                ) as is_stored,
                if(remains and next_earliest.batch > batch, next_earliest, null) as ended_from,
                if(next_version is null or next_delete.at < next_version.at, next_delete, null) as deleted
            from with_next_version
            where kind <> 3
        ),

        -- Rules 2, 6, 6b and 7 in the order of their batches; rule 8: none of them where the flag is NULL.
        ended as (
            select
                *,
                least(
                    case
                        when deleted.batch < coalesce(ended_from.batch, next_version.batch) then `c_end`
                        when ended_from is not null
                            and (
                                coalesce(`c_Is ``Current```, false)
                                    or (
                                        coalesce(next_stored >= ended_from.at, true)
                                            and `c_end` >= ended_from.at
                                    )
                            )
                            then date_sub(ended_from.at, 1)
                        when coalesce(`c_Is ``Current```, false) and next_version is not null
                            then date_sub(next_version.at, 1)
                        else `c_end`
                    end,
                    -- A stored version ends before staged rows, a staged row before any version.
                    date_sub(if(kind = 0, next_begun, next_version.at), 1),
                    deleted.end_at
                ) as new_end,
                coalesce(`c_Is ``Current```, false) and ended_from is null and next_version is null
                    and deleted is null as is_open
            from with_ends
        ),

        final_versions as (
            select
                *,
                if(can_close, new_end, `c_end`) as final_end
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and coalesce(`c_Is ``Current```, false) as was_open,
                case
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case
                            when not remains then 'remove'
                            when not (final_end <=> `c_end`) or not (if(can_close, is_open, `c_Is ``Current```) <=> `c_Is ``Current```) then 'close'
                        end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_My Key` <=> stored.`c_My Key` and `c_path` <=> stored.`c_path` and `c_select` <=> stored.`c_select` and `c_it's` <=> stored.`c_it's` and `c_start` <=> stored.`c_start`)
                        then 'replace'
                    when not (final_end <=> stored.`c_end`) or not (if(can_close, is_open, `c_Is ``Current```) <=> stored.`c_Is ``Current```) then 'close'
                end as op,
                not is_skipped and not is_replaced and remains and is_open as is_open,
                at,
                least(stored.`c_end`, final_end) as earlier_end,
                `c_My Key`
                    as `c_My Key`,
                `c_path`
                    as `c_path`,
                `c_select`
                    as `c_select`,
                `c_it's`
                    as `c_it's`,
                `c_start`
                    as `c_start`,
                final_end
                    as `c_end`,
                if(can_close, is_open, `c_Is ``Current```)
                    as `c_Is ``Current```
            from final_versions
        )

        select
            op,
            if(
                op in ('add', 'skip'),
                null,
                at
            ) as `match_start`,
            `c_My Key`,
            `c_path`,
            `c_select`,
            `c_it's`,
            `c_start`,
            `c_end`,
            `c_Is ``Current```
        from resolved
        where op is not null
    ) as operations
    on
        (history.`end` >= date'2023-12-31' or history.`end` is null)
        and pmod(xxhash64(history.`My Key`, history.`path`), 32768) in (4, 63)
        and history.`My Key` = operations.`c_My Key`
        and history.`path` = operations.`c_path`
        and history.`start`
            = operations.`match_start`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `end`
            = operations.`c_end`,
        `Is ``Current```
            = operations.`c_Is ``Current```
    when matched and operations.op = 'replace' then update set
        `My Key`
            = operations.`c_My Key`,
        `path`
            = operations.`c_path`,
        `select`
            = operations.`c_select`,
        `it's`
            = operations.`c_it's`,
        `start`
            = operations.`c_start`,
        `end`
            = operations.`c_end`,
        `Is ``Current```
            = operations.`c_Is ``Current```
    when not matched and operations.op = 'add' then insert (
        `My Key`,
        `path`,
        `select`,
        `it's`,
        `start`,
        `end`,
        `Is ``Current```
    ) values (
        operations.`c_My Key`,
        operations.`c_path`,
        operations.`c_select`,
        operations.`c_it's`,
        operations.`c_start`,
        operations.`c_end`,
        operations.`c_Is ``Current```
    )
    -- If the version of an operation is not found, the statement fails and commits nothing.
    when not matched and operations.op in ('remove', 'close', 'replace')
        then insert (`end`)
    values (
        cast(raise_error('dbt_history: a version to change was not found') as date)
    )
