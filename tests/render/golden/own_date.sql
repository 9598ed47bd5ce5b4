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
                    if(`_stage` = 'delete', `end`, `start`) as at,
                    cast(`_order` as bigint) as position,
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

            union all

            -- A SELECT that was evaluated again since the plan must not be applied.
            select
                if(evaluated_at <= 0L, kind, raise_error('dbt_history: evaluated again')) as kind,
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

        -- What each row sees around it: E (rule 1), the rows that follow, the stored version at the same place.
        with_neighbours as (
            select
                *,
                min(if(kind = 4, at, null)) over (
                    partition by `c_My Key`, `c_path`
                            order by at, kind = 3, kind, position
                    rows between unbounded preceding and unbounded following
                ) as earliest,
                lead(if(kind in (1, 2), at, null)) ignore nulls over axis as next_row,
                lead(if(kind <= 2, at, null)) ignore nulls over axis as next_known,
                lead(if(kind = 3, at, null)) ignore nulls over axis as next_delete,
                lead(if(kind = 0, at, null)) ignore nulls over axis as next_stored,
                last_value(if(kind = 0, struct(at, `c_My Key`, `c_path`, `c_select`, `c_it's`, `c_start`, `c_end`, `c_Is ``Current```), null), true) over (
                    partition by `c_My Key`, `c_path`
                            order by at, kind = 3, kind, position
                    rows between unbounded preceding and current row
                ) as stored
            from history
            window axis as (
                partition by `c_My Key`, `c_path`
                            order by at, kind = 3, kind, position
            )
        ),

        -- Rule 3: a survivor is a base if it lasted, this batch's deletes included, until the first row of the batch after it.
        with_bases as (
            select
                *,
                kind = 0 and (earliest is null or at < earliest) as survives,
                kind = 1 or kind = 2 or (
                    kind = 0
                    and (earliest is null or at < earliest)
                    and next_row is not null
                    and coalesce(
                        least(
                            if(coalesce(`c_Is ``Current```, false), null, `c_end`),
                            if(`c_Is ``Current``` is not null and (next_known is null or next_delete < next_known), next_delete, null)
                        ) >= date_sub(least(earliest, next_row), 1),
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
                    if(if(kind = 2, not array_contains(unmodified, 'select'), is_base), named_struct('v', `c_select`), null), true
                ) over axis as `f_select`,
                last_value(
                    if(if(kind = 2, not array_contains(unmodified, 'it\'s'), is_base), named_struct('v', `c_it's`), null), true
                ) over axis as `f_it's`,
                last_value(
                    if(
                        if(kind = 2, not array_contains(unmodified, 'end'), is_base),
                        named_struct('v', if(((kind = 2 and array_contains(unmodified, 'is `current`')) or coalesce(`c_Is ``Current```, false)), `c_end`, date'9999-12-31')),
                        null
                    ),
                    true
                ) over axis as open_end,
                kind = 2 and not coalesce(max(is_base) over axis, false) as is_skipped
            from with_bases
            window axis as (
                partition by `c_My Key`, `c_path`
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
                        partition by `c_My Key`, `c_path`
                                order by at, kind = 3, kind, position
                    ) as next_version,
                lead(if(kind in (1, 2) and not is_skipped, at, null)) ignore nulls over (
                    partition by `c_My Key`, `c_path`
                            order by at, kind = 3, kind, position
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

        -- Rule 2 closes and clips at E, rule 6 seals at the next start, rule 6b cuts, rule 7 deletes; rule 8: never where the flag is NULL.
        ended as (
            select
                *,
                `c_Is ``Current``` is not null as can_close,
                coalesce(next_version.at = at, false) as is_replaced,
                coalesce(kind in (1, 2) and stored.at = at, false) as is_stored,
                if(next_version is null or next_delete < next_version.at, next_delete, null) as deleted_at,
                least(
                    case
                        when survives and earliest is not null and (coalesce(`c_Is ``Current```, false) or (coalesce(next_stored >= earliest, true) and `c_end` >= earliest))
                            then date_sub(earliest, 1)
                        when coalesce(`c_Is ``Current```, false) and next_version is not null then date_sub(next_version.at, 1)
                        else `c_end`
                    end,
                    -- A stored version ends before the rows of the batch, a row of the batch before any version.
                    date_sub(if(kind = 0, next_begun, next_version.at), 1)
                ) as sealed_end,
                coalesce(`c_Is ``Current```, false) and not (survives and earliest is not null) and next_version is null as stays_open
            from with_next_version
            where kind <> 3
        ),

        final_versions as (
            select
                *,
                if(can_close, if(deleted_at is null, sealed_end, least(sealed_end, deleted_at)), `c_end`) as final_end,
                stays_open and deleted_at is null as is_open
            from ended
        ),

        resolved as (
            select
                kind,
                kind = 0 and coalesce(`c_Is ``Current```, false) as was_open,
                case
                    when is_skipped then 'skip'
                    when kind = 0 and not is_replaced then
                        case when not survives then 'remove' when not (final_end <=> `c_end`) or not (if(can_close, is_open, `c_Is ``Current```) <=> `c_Is ``Current```) then 'close' end
                    when is_replaced then null
                    when not is_stored then 'add'
                    when not (`c_My Key` <=> stored.`c_My Key` and `c_path` <=> stored.`c_path` and `c_select` <=> stored.`c_select` and `c_it's` <=> stored.`c_it's` and `c_start` <=> stored.`c_start`) then 'replace'
                    when not (final_end <=> stored.`c_end`) or not (if(can_close, is_open, `c_Is ``Current```) <=> stored.`c_Is ``Current```) then 'close'
                end as op,
                not is_skipped and not is_replaced and (kind <> 0 or survives) and is_open as is_open,
                at,
                least(stored.`c_end`, final_end) as earlier_end,
                `c_My Key` as `c_My Key`,
                `c_path` as `c_path`,
                `c_select` as `c_select`,
                `c_it's` as `c_it's`,
                `c_start` as `c_start`,
                final_end as `c_end`,
                if(can_close, is_open, `c_Is ``Current```) as `c_Is ``Current```
            from final_versions
        )

        select
            op,
            if(op in ('add', 'skip'), null, at) as `match_start`,
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
        and getbit(cast(split('16,2147483648', ',') as array<bigint>)[cast(pmod(xxhash64(history.`My Key`, history.`path`), 32768) div 32 as int)], cast(pmod(xxhash64(history.`My Key`, history.`path`), 32768) % 32 as int)) = 1
        and history.`My Key` = operations.`c_My Key`
        and history.`path` = operations.`c_path`
        and history.`start` = operations.`match_start`
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        `end` = operations.`c_end`,
        `Is ``Current``` = operations.`c_Is ``Current```
    when matched and operations.op = 'replace' then update set
        `My Key` = operations.`c_My Key`,
        `path` = operations.`c_path`,
        `select` = operations.`c_select`,
        `it's` = operations.`c_it's`,
        `start` = operations.`c_start`,
        `end` = operations.`c_end`,
        `Is ``Current``` = operations.`c_Is ``Current```
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
    -- An operation that does not find its version must not vanish: nothing is committed then.
    when not matched and operations.op in ('remove', 'close', 'replace') then insert (`end`)
    values (cast(raise_error('dbt_history: a version to change was not found') as date))
