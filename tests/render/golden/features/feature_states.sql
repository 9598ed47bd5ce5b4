/* dbt_history:batch {"number": 45, "after": 41} */
with
log as (
    select
        `id` as `c_id`,
        cast(`txn` as bigint) as txn,
        cast(`position` as bigint) as position,
        cast(`action` as string) as action,
        cast(`app_id` as string) as app_id,
        cast(`at` as timestamp) as at,
        nullif(cast(`author` as string), '') as author,
        cast(null as string) as message,
        cast(null as string) as commit_json,
        cast(null as timestamp) as written_at,
        lower(cast(`expected_uuid` as string)) as expected_uuid,
        cast(null as string) as base_uuid,
        coalesce(cast(null as string), 'CREATE') as on_not_exists,
        coalesce(cast(null as string), 'REPLACE') as on_exists,
        coalesce(cast(null as string), 'ERROR') as on_version_conflict,
        coalesce(cast(null as string), 'ERROR') as on_merge_conflict,
        coalesce(cast(null as boolean), false) as rolled_back,
        coalesce(cast(null as string), 'all_or_nothing') as mode,
        coalesce(cast(null as string), 'record') as noop_updates,
        coalesce(cast(null as boolean), false) as auto_purge,
        coalesce(cast(null as string), 'on') as history,
        cast(null as bigint) as keep_states,
        coalesce(cast(null as boolean), false) as resync,
        cast(named_struct(
            'p0', `Geometry`,
            'p1', `properties`
        ) as struct<p0: binary, p1: string>) as content
    from `golden`.`topology_writes`
    where `txn` > 41L
        and `txn` <= 45L
),
-- An option that applies to a whole transaction may be set by any of its writes.
transactions_of_log as (
    select
        *,
        case
            when bool_or(rolled_back) over transaction
                then named_struct(
                    'outcome', 'ROLLED_BACK', 'reason', 'the client rolled the transaction back'
                )
            when bool_or(app_id is null or app_id = '') over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction names no app_id')
            when bool_or(at is null) over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction has no time')
            when min(mode) over transaction <> max(mode) over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction has two modes')
        end as txn_problem,
        unix_millis(min(at) over transaction) as at_ms
    from log
    window transaction as (partition by txn)
),
prepared as (
    select
        *,
        (txn in (44L)) or txn_problem is not null as is_refused,
        txn * 1048576 + if(position between 0 and 1048575, position, 0) as i,
        coalesce(unix_millis(written_at), at_ms) as real_ms,
        least(
            greatest(date_from_unix_date(cast(floor(at_ms / 86400000) as int)), date'2000-01-01'),
            date'3023-12-31'
        ) as day,
        case
            when position is null or position not between 0 and 1048575 then 'ERROR:position'
            when not coalesce(action in ('CREATE', 'UPDATE', 'PUT', 'DELETE', 'PURGE', 'WRITE') and on_not_exists in ('CREATE', 'RETAIN', 'ERROR') and on_exists in ('REPLACE', 'RETAIN', 'DELETE', 'ERROR') and on_version_conflict in ('ERROR', 'RETAIN', 'REPLACE', 'MERGE') and on_merge_conflict in ('ERROR', 'RETAIN', 'REPLACE') and mode in ('all_or_nothing', 'per_row') and noop_updates in ('record', 'skip') and history in ('on', 'off'), false) then 'ERROR:action'
            when keep_states < 1 then 'ERROR:keep_states'
        end as problem,
        case action
            when 'WRITE' then on_not_exists
            when 'UPDATE' then 'ERROR'
            when 'DELETE' then 'RETAIN'
            when 'PURGE' then 'RETAIN'
            else 'CREATE'
        end as if_absent,
        case action
            when 'WRITE' then on_exists
            when 'CREATE' then 'ERROR'
            when 'DELETE' then 'DELETE'
            when 'PURGE' then 'PURGE'
            else 'REPLACE'
        end as if_live
    from transactions_of_log
),
identified as (
    select
        *,
        case
            when cast(i as bigint) is null or cast(day as date) is null or 1 is null or cast(3 as bigint) is null
                then cast(null as string)
            when cast(i as bigint) not between 0 and 1152921504606846975
                then cast(raise_error('dbt_history.uuid_of: the object id is not in [0, 2^60)') as string)
            when year(cast(day as date)) not between 2000 and 3023
                then cast(raise_error('dbt_history.uuid_of: the year is not in [2000, 3023]') as string)
            when 1 not between 0 and 7
                then cast(raise_error('dbt_history.uuid_of: the type is not in [0, 7]') as string)
            when cast(3 as bigint) not between 0 and 1099511627775
                then cast(raise_error('dbt_history.uuid_of: the database id is not in [0, 2^40)') as string)
            else concat(
                substring(format_string('%012x', shiftright(cast(i as bigint), 12)), 1, 8), '-',
                substring(format_string('%012x', shiftright(cast(i as bigint), 12)), 9, 4), '-',
                '4', format_string('%03x', cast(i as bigint) & 4095L), '-',
                format_string('%04x', 32768 | shiftleft(year(cast(day as date)) - 2000, 4) | month(cast(day as date))), '-',
                format_string(
                    '%012x',
                    shiftleft(cast(day(cast(day as date)) as bigint), 43) | shiftleft(1 + 0L, 40)
                        | cast(3 as bigint)
                )
            )
        end as uuid,
        case
            when cast(txn as bigint) is null or cast(day as date) is null or 0 is null or cast(3 as bigint) is null
                then cast(null as string)
            when cast(txn as bigint) not between 0 and 1152921504606846975
                then cast(raise_error('dbt_history.uuid_of: the object id is not in [0, 2^60)') as string)
            when year(cast(day as date)) not between 2000 and 3023
                then cast(raise_error('dbt_history.uuid_of: the year is not in [2000, 3023]') as string)
            when 0 not between 0 and 7
                then cast(raise_error('dbt_history.uuid_of: the type is not in [0, 7]') as string)
            when cast(3 as bigint) not between 0 and 1099511627775
                then cast(raise_error('dbt_history.uuid_of: the database id is not in [0, 2^40)') as string)
            else concat(
                substring(format_string('%012x', shiftright(cast(txn as bigint), 12)), 1, 8), '-',
                substring(format_string('%012x', shiftright(cast(txn as bigint), 12)), 9, 4), '-',
                '4', format_string('%03x', cast(txn as bigint) & 4095L), '-',
                format_string('%04x', 32768 | shiftleft(year(cast(day as date)) - 2000, 4) | month(cast(day as date))), '-',
                format_string(
                    '%012x',
                    shiftleft(cast(day(cast(day as date)) as bigint), 43) | shiftleft(0 + 0L, 40)
                        | cast(3 as bigint)
                )
            )
        end
            as txn_uuid
    from prepared
),
stored_heads as (
    select
        stored.`id` as `c_id`,
        cast(named_struct('i', stored.`i`, 'seq', stored.`i`, 'txn', stored.`txn`, 'action', stored.`@ns:com:here:xyz`.`action`, 'version', stored.`@ns:com:here:xyz`.`version`, 'author', stored.`@ns:com:here:xyz`.`author`, 'app_id', stored.`@ns:com:here:xyz`.`app_id`, 'puuid', stored.`@ns:com:here:xyz`.`puuid`, 'uuid', stored.`@ns:com:here:xyz`.`uuid`, 'txn_uuid', stored.`@ns:com:here:xyz`.`txn`, 'createdAt', stored.`@ns:com:here:xyz`.`createdAt`, 'updatedAt', stored.`@ns:com:here:xyz`.`updatedAt`, 'rtcts', stored.`@ns:com:here:xyz`.`rtcts`, 'rtuts', stored.`@ns:com:here:xyz`.`rtuts`, 'author_txn', stored.`author_txn`, 'created_txn', stored.`created_txn`, 'purged_txn', if(stored.`purged_txn` <= 41L, stored.`purged_txn`, null), 'resync', stored.`resync`, 'content', cast(named_struct('p0', stored.`Geometry`, 'p1', stored.`properties`) as struct<p0: binary, p1: string>)) as struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>) as state
    from `golden`.`topology` as stored
    left semi join
        identified as written
        on stored.`id` = written.`c_id`
    where stored.`txn` <= 41L
        and (stored.`txn_next` is null or stored.`txn_next` > 41L)
),
-- Of a live state and earlier tombstones the newest one applies; a purge after `after` is ignored.
heads as (
    select
        `c_id`,
        max_by(state, state.i) as state
    from stored_heads
    group by `c_id`
),
based_writes as (
    select
        written.*,
        cast(null as struct<p0: binary, p1: string>) as base_content
    from identified as written
),
writes_of_feature as (
    select
        `c_id`,
        array_sort(
            collect_list(named_struct(
                'i', i,
                'txn', txn,
                'position', position,
                'action', action,
                'app_id', app_id,
                'author', author,
                'message', message,
                'commit_json', commit_json,
                'at_ms', at_ms,
                'real_ms', real_ms,
                'uuid', uuid,
                'txn_uuid', txn_uuid,
                'expected_uuid', expected_uuid,
                'base_uuid', base_uuid,
                'if_absent', if_absent,
                'if_live', if_live,
                'on_version_conflict', on_version_conflict,
                'on_merge_conflict', on_merge_conflict,
                'mode', mode,
                'noop_updates', noop_updates,
                'auto_purge', auto_purge,
                'history', history,
                'keep_states', keep_states,
                'resync', resync,
                'problem', problem,
                'txn_problem', txn_problem,
                'is_refused', is_refused,
                'base', base_content,
                'content', content
            )),
            (one, other) -> case when one.i < other.i then -1 when one.i > other.i then 1 else 0 end
        ) as writes
    from based_writes
    group by `c_id`
),
heads_of_writes as (
    select
        writes_of_feature.`c_id`,
        writes,
        heads.state as head
    from writes_of_feature
    left join heads
        on
        writes_of_feature.`c_id` <=> heads.`c_id`
),
-- The generator prevents the optimizer from duplicating the fold for every field that is read.
folds as (
    select
        heads_of_writes.*,
        folding.fold
    from heads_of_writes
    lateral view explode(array(
        aggregate(
            writes,
            cast(named_struct(
                'now', head, 'settled', head, 'txn', cast(null as bigint), 'is_refused', false,
                'new_states', array(), 'outcomes', array()
            ) as struct<
                now: struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>,
                settled: struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>,
                txn: bigint,
                is_refused: boolean,
                new_states: array<struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>>,
                outcomes: array<struct<i: bigint, txn: bigint, position: bigint, action: string, code: string, was_live: boolean, mode: string, is_refused: boolean, txn_problem: struct<outcome: string, reason: string>, app_id: string, author: string, message: string, commit_json: string, at_ms: bigint, keep_states: bigint>>
            >),
            (acc, w) -> element_at(
                transform(
                    transform(
                        transform(
                            array(named_struct(
                                'own', if(acc.txn = w.txn, acc.now, if(acc.is_refused, acc.settled, acc.now)),
                                'now', if(acc.txn = w.txn, acc.now, if(acc.is_refused, acc.settled, acc.now)),
                                'settled', if(acc.txn = w.txn, acc.settled, if(acc.is_refused, acc.settled, acc.now))
                            )),
                            x -> named_struct(
                                'own', x.own, 'now', x.now, 'settled', x.settled,
                                'live', if(x.now.action <> 'DELETE', x.now, null),
                                'merged', cast(null as struct<content: struct<p0: binary, p1: string>, clashes: boolean>)
                            )
                        ),
                        x -> named_struct(
                            'own', x.own, 'now', x.now, 'settled', x.settled,
                            'live', x.live,
                            'merged', x.merged, 'code',
                        case
                            when w.txn_problem is not null then 'ERROR:transaction'
                            when w.problem is not null then w.problem
                            when x.live is null then case
                                when w.action = 'PURGE' and x.now.action = 'DELETE' and x.now.purged_txn is null
                                    then if(
                                        w.expected_uuid is null or w.expected_uuid = lower(x.now.uuid),
                                        'PURGED',
                                        'CONFLICT:uuid'
                                    )
                                when w.if_absent = 'RETAIN' then if(w.action = 'WRITE', 'RETAINED', 'RETAINED:missing')
                                when w.if_absent = 'ERROR' then 'NOT_FOUND'
                                when w.expected_uuid is not null then 'CONFLICT:uuid'
                                else 'CREATED'
                            end
                            when w.action = 'CREATE' then 'CONFLICT:exists'
                            when w.expected_uuid is not null and w.expected_uuid <> lower(x.live.uuid) then 'CONFLICT:uuid'
                            when w.base_uuid is not null and w.base_uuid <> lower(x.live.uuid)
                                and w.on_version_conflict <> 'REPLACE'
                                then case
                                when w.on_version_conflict = 'ERROR' then 'CONFLICT:base'
                                when w.on_version_conflict = 'RETAIN' then 'RETAINED'
                                when not x.merged.clashes
                                    then if(w.noop_updates = 'skip' and x.merged.content.p0 <=> x.live.content.p0 and coalesce(to_json(try_parse_json(x.merged.content.p1)), x.merged.content.p1) <=> coalesce(to_json(try_parse_json(x.live.content.p1)), x.live.content.p1), 'RETAINED:same', 'MERGED')
                                when w.on_merge_conflict = 'ERROR' then 'CONFLICT:merge'
                                when w.on_merge_conflict = 'RETAIN' then 'RETAINED'
                                else if(w.noop_updates = 'skip' and w.content.p0 <=> x.live.content.p0 and coalesce(to_json(try_parse_json(w.content.p1)), w.content.p1) <=> coalesce(to_json(try_parse_json(x.live.content.p1)), x.live.content.p1), 'RETAINED:same', 'UPDATED')
                            end
                            when w.if_live = 'ERROR' then 'CONFLICT:exists'
                            when w.if_live = 'RETAIN' then 'RETAINED'
                            when w.if_live = 'DELETE' then 'DELETED'
                            when w.if_live = 'PURGE' then 'PURGED'
                            else if(w.noop_updates = 'skip' and w.content.p0 <=> x.live.content.p0 and coalesce(to_json(try_parse_json(w.content.p1)), w.content.p1) <=> coalesce(to_json(try_parse_json(x.live.content.p1)), x.live.content.p1), 'RETAINED:same', 'UPDATED')
                        end
                        )
                    ),
                    x -> element_at(
                        transform(
                            array(case
                                when substring_index(x.code, ':', 1) in ('CONFLICT', 'NOT_FOUND', 'ERROR', 'RETAINED') then null
                                when x.code = 'PURGED' and x.live is null
                                    then cast(named_struct('i', x.now.i, 'seq', w.i, 'txn', x.now.txn, 'action', x.now.action, 'version', x.now.version, 'author', x.now.author, 'app_id', x.now.app_id, 'puuid', x.now.puuid, 'uuid', x.now.uuid, 'txn_uuid', x.now.txn_uuid, 'createdAt', x.now.createdAt, 'updatedAt', x.now.updatedAt, 'rtcts', x.now.rtcts, 'rtuts', x.now.rtuts, 'author_txn', x.now.author_txn, 'created_txn', x.now.created_txn, 'purged_txn', w.txn, 'resync', x.now.resync, 'content', x.now.content) as struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>)
                                else
                                cast(named_struct(
                                    'i', w.i,
                                    'seq', w.i,
                                    'txn', w.txn,
                                    'action', case x.code
                                        when 'CREATED' then 'CREATE'
                                        when 'UPDATED' then 'UPDATE'
                                        when 'MERGED' then 'UPDATE'
                                        else 'DELETE'
                                    end,
                                    'version', coalesce(x.live.version, 0) + 1,
                                    'author', coalesce(w.author, x.live.author, w.app_id),
                                    'app_id', w.app_id,
                                    'puuid', x.live.uuid,
                                    'uuid', w.uuid,
                                    'txn_uuid', w.txn_uuid,
                                    'createdAt', coalesce(x.live.createdAt, w.at_ms),
                                    'updatedAt', w.at_ms,
                                    'rtcts', coalesce(x.live.rtcts, w.real_ms),
                                    'rtuts', w.real_ms,
                                    'author_txn', if(w.author is not null or x.live is null, w.txn, x.live.author_txn),
                                    'created_txn', coalesce(x.live.created_txn, w.txn),
                                    'purged_txn', if(x.code = 'PURGED' or (x.code = 'DELETED' and w.auto_purge), w.txn, null),
                                    'resync', w.resync,
                                    'content', case x.code
                                        when 'MERGED' then x.merged.content
                                        when 'DELETED' then x.live.content
                                        when 'PURGED' then x.live.content
                                        else w.content
                                    end
                                ) as struct<i: bigint, seq: bigint, txn: bigint, action: string, version: bigint, author: string, app_id: string, puuid: string, uuid: string, txn_uuid: string, createdAt: bigint, updatedAt: bigint, rtcts: bigint, rtuts: bigint, author_txn: bigint, created_txn: bigint, purged_txn: bigint, resync: boolean, content: struct<p0: binary, p1: string>>)
                            end),
                            state -> named_struct(
                                'now', coalesce(state, x.own),
                                'settled', x.settled,
                                'txn', w.txn,
                                'is_refused', w.is_refused,
                                'new_states',
                                if(state is null or w.is_refused, acc.new_states, concat(acc.new_states, array(state))),
                                'outcomes', concat(acc.outcomes, array(cast(named_struct(
                                    'i', w.i, 'txn', w.txn, 'position', w.position, 'action', w.action,
                                    'code', if(x.code = 'MERGED', 'UPDATED', x.code),
                                    'was_live', x.live is not null, 'mode', w.mode, 'is_refused', w.is_refused,
                                    'txn_problem', w.txn_problem,
                                    'app_id', w.app_id, 'author', w.author, 'message', w.message,
                                    'commit_json', w.commit_json, 'at_ms', w.at_ms,
                                    'keep_states', w.keep_states
                                ) as struct<i: bigint, txn: bigint, position: bigint, action: string, code: string, was_live: boolean, mode: string, is_refused: boolean, txn_problem: struct<outcome: string, reason: string>, app_id: string, author: string, message: string, commit_json: string, at_ms: bigint, keep_states: bigint>)))
                            )
                        ),
                        1
                    )
                ),
                1
            ),
            acc -> named_struct('new_states', acc.new_states, 'outcomes', acc.outcomes)
        )
    )) folding as fold
),
folded as (
    select
        `c_id`,
        head,
        fold.new_states as new_states,
        fold.outcomes as outcomes
    from folds
),
rows_of_features as (
    select
        `c_id`,
        explode(concat(
            transform(
                new_states,
                state -> named_struct('removed_from', cast(null as bigint), 'state', state)
            )
        )) as entry
    from folded
),
staged as (
    select
        if(entry.removed_from is null, 'upsert', 'earliest_start') as `_stage`,
        entry.state.seq as `_order`,
        `c_id`,
        coalesce(entry.removed_from, entry.state.txn) as `txn`,
        if(entry.state.action = 'DELETE', entry.state.txn, null) as `txn_next`,
        entry.state.i as `i`,
        entry.state
    from rows_of_features
)
select
    `_stage`,
    45L as `_batch`,
    `_order`,
    `c_id` as `id`,
    `i`,
    `txn`,
    `txn_next`,
    state.content.`p0` as `Geometry`,
    state.content.`p1` as `properties`,
    state.author_txn as `author_txn`,
    state.created_txn as `created_txn`,
    state.purged_txn as `purged_txn`,
    state.resync as `resync`,
    if(state is null, null, named_struct(
        'action', state.action,
        'version', state.version,
        'author', state.author,
        'app_id', state.app_id,
        'puuid', state.puuid,
        'uuid', state.uuid,
        'txn', state.txn_uuid,
        'createdAt', state.createdAt,
        'updatedAt', state.updatedAt,
        'rtcts', state.rtcts,
        'rtuts', state.rtuts
    )) as `@ns:com:here:xyz`
from staged
