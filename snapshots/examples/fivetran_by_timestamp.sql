{#
    dbt's strategy `timestamp`: a row is a new version if `updated_at` is later than the stored start.

    One row per key: two rows of one key in a load become two current versions. A change that leaves
    `updated_at` as it was is not noticed; where that can happen, use `check` or `dbt_history.versions`
    without `updated_at`.

    `hard_deletes: new_record` ends a deleted record and adds a row with its last values and
    `dbt_is_deleted` 'True'. dbt-spark alone writes NULL in all columns of that row.
#}
{% snapshot fivetran_by_timestamp %}

{{
    config(
        strategy='timestamp',
        unique_key='id',
        updated_at='changed_at',
        hard_deletes='new_record',
    )
}}

select
    id,
    col1,
    col2,
    changed_at
from (
    select
        *,
        row_number() over (partition by id order by changed_at desc, col1 desc, col2 desc) as place
    from {{ ref('fivetran_snapshot_source') }}
) as ordered
where place = 1

{% endsnapshot %}
