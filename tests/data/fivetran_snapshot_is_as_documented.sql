{#
    The snapshot, row for row, if it was taken after each batch as `make build` does: the documented rows, except
    where `snapshot_differs` gives a reason. The records of the example changed in 2024; a later end is the time of
    the run that found a record missing.
#}
{%- set last_batch -%}
(
    select least(max(_batch), {{ var('fivetran_batches', 6) }})
    from {{ source('landing', 'fivetran_items_landing') }}
)
{%- endset -%}
{%- set rows -%}
(
    select
        id,
        col1,
        col2,
        changed_at,
        _fivetran_start,
        if(
            _fivetran_end between timestamp'2025-01-01 00:00:00 UTC' and current_timestamp(),
            'run',
            date_format(to_utc_timestamp(_fivetran_end, current_timezone()), "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
        ) as snapshot_end,
        _fivetran_active
    from {{ ref('fivetran_snapshot') }}
)
{%- endset -%}
{%- set expected -%}
(
    select
        id,
        col1,
        col2,
        _fivetran_start as changed_at,
        _fivetran_start,
        snapshot_end,
        _fivetran_active
    from {{ ref('fivetran_history_expected') }}
    where
        after_batch = {{ last_batch }}
        and snapshot_end is not null
)
{%- endset -%}
{{ dbt_history.test_matches_expected(rows, expected) }}
