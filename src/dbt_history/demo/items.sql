{{
    config(
        materialized='history_batch',
        unique_key='id',
        meta={'history': {'convention': 'fivetran', 'batches_per_commit': 1}},
    )
}}

-- The documented example of Fivetran's history mode, in five batches (docs/examples.md): T1 to T5, then a
-- deletion, a record that comes back, and late rows.
select
    stage as _stage,
    cast(batch as bigint) as _batch,
    cast(line as bigint) as _order,
    unmodified as _unmodified,
    cast(id as bigint) as id,
    col1,
    cast(col2 as bigint) as col2,
    cast('2024-01-01 00:' || start_at as timestamp) as _fivetran_start,
    case
        when stage = 'earliest_start' then null
        when end_at is null then timestamp'9999-12-31 23:59:59.999 UTC'
        else cast('2024-01-01 00:' || end_at as timestamp)
    end as _fivetran_end,
    case when stage in ('upsert', 'update') then end_at is null end as _fivetran_active,
    cast('2024-01-01 01:' || synced_at as timestamp) as _fivetran_synced
from values
    ('earliest_start', 1, 1, 1, null, null, '01:00', null, null, null),
    ('earliest_start', 1, 2, 2, null, null, '02:00', null, null, null),
    ('upsert', 1, 1, 1, 'abc', 1, '01:00', '01:59.999', '40:00', null),
    ('upsert', 1, 2, 1, 'pqr', 2, '02:00', null, '41:00', null),
    ('upsert', 1, 3, 2, 'mno', 3, '02:00', null, '43:00', null),
    ('earliest_start', 2, 1, 1, null, null, '03:00', null, null, null),
    ('earliest_start', 2, 2, 2, null, null, '04:00', null, null, null),
    ('update', 2, 1, 1, 'xyz', null, '03:00', '04:59.999', '47:00', array('col2')),
    ('update', 2, 2, 1, 'def', null, '05:00', null, '49:00', array('col2')),
    ('update', 2, 3, 2, null, 1000, '04:00', null, '48:00', array('col1')),
    ('delete', 3, 1, 2, null, null, null, '06:00', null, null),
    ('earliest_start', 4, 1, 1, null, null, '07:00', null, null, null),
    ('earliest_start', 4, 2, 2, null, null, '08:00', null, null, null),
    ('earliest_start', 4, 3, 3, null, null, '07:00', null, null, null),
    ('upsert', 4, 1, 1, 'ghi', 5, '07:00', null, '51:00', null),
    ('upsert', 4, 2, 2, 'mno', 7, '08:00', null, '52:00', null),
    ('upsert', 4, 3, 3, 'stu', null, '07:00', null, '53:00', null),
    ('earliest_start', 5, 1, 1, null, null, '04:00', null, null, null),
    ('update', 5, 1, 1, 'uvw', null, '04:00', '04:59.999', '54:00', array('col2')),
    ('update', 5, 2, 1, 'def', null, '05:00', '06:59.999', '55:00', array('col2')),
    ('upsert', 5, 1, 1, 'ghi', 5, '07:00', null, '56:00', null)
    as request_rows (
        stage, batch, line, id, col1, col2, start_at, end_at, synced_at, unmodified
    )
