{#
    The log of transactions with its documented columns: one row per transaction and space that it
    changed, and one row per commit message (schema `COMMIT_MSG`), also if the writes of a
    transaction have several. It is made from the rows of `feature_outcomes`; a transaction that
    changed nothing has no row. `space`, `id` and `ts` are set when the transaction is numbered
    (`number_transactions`). `commit_json` of a space holds the counts; of a message, the client's
    own, as it was written. For a `history_append` model: `_batch`
    is the transaction, so select the outcomes `where txn > last_batch()`.
#}
{% macro transaction_rows(outcomes, space, schema=none, database_id=0) %}
    {%- set space = dbt_history._quote(space) -%}
    {%- set schema = dbt_history._string_literal(schema or target.schema) -%}
with changes as (
    select
        *,
        dense_rank() over (partition by `txn` order by {{ space }}) as place,
        date_from_unix_date(cast(floor(unix_millis(`at`) / 86400000) as int)) as utc_day
    from {{ outcomes }}
    where not `is_refused` and (`has_state` or `outcome` = 'PURGED')
),

tables as (
    select
        `txn`,
        min(place) as place,
        {{ schema }} as `schema`,
        {{ space }} as `table`,
        cast(null as string) as commit_msg,
        to_json(named_struct(
            'app_id', max(`app_id`),
            'author', max(`author`),
            'created', count_if(`outcome` = 'CREATED'),
            'updated', count_if(`outcome` = 'UPDATED'),
            'deleted', count_if(`outcome` = 'DELETED' or (`outcome` = 'PURGED' and `has_state`)),
            'purged', count_if(`outcome` = 'PURGED')
        )) as commit_json,
        max(`at`) as txts,
        max(utc_day) as utc_day
    from changes
    group by `txn`, {{ space }}
),

said as (
    select
        `txn`,
        `message`,
        `commit_json`,
        row_number() over (
            partition by `txn` order by min(`position`), `message`, `commit_json`
        ) as number,
        max(`at`) as txts,
        max(utc_day) as utc_day
    from changes
    where `message` is not null or `commit_json` is not null
    group by `txn`, `message`, `commit_json`
),

messages as (
    select
        `txn`,
        -- The first message precedes the spaces of its transaction, others follow them.
        if(number = 1, 0, 524288 + number) as place,
        'COMMIT_MSG' as `schema`,
        cast(`txn` as string) as `table`,
        `message` as commit_msg,
        `commit_json` as commit_json,
        txts,
        utc_day
    from said
),

entries as (
    select * from tables
    union all
    select * from messages
)

select
    `txn` as `_batch`,
    `txn` * 1048576 + place as `i`,
    `txn` as `txid`,
    `txn` as `txi`,
    txts as `txts`,
    cast({{ database_id }} as bigint) as `txdb`,
    {{ dbt_history.uuid_of(
        '`txn`', "least(greatest(utc_day, date'2000-01-01'), date'3023-12-31')", 'transaction',
        database_id,
    ) | indent(4) }} as `txn`,
    `schema`,
    `table`,
    commit_msg as `commit_msg`,
    commit_json as `commit_json`
from entries
{% endmacro %}
