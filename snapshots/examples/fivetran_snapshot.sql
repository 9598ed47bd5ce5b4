{#
    The strategy `dbt_history.versions`: a row is a new version if a checked column differs, null-safe;
    it starts at `updated_at`, and a row that is not newer than the stored version is ignored.

    The columns have the names of Fivetran's history mode. `snapshot_meta_column_names` has no entry
    for the flag, so the query selects it and the snapshot's MERGE sets it to false (`meta.history`).

    `hard_deletes: invalidate` ends a deleted record at the time of the run.
#}
{% snapshot fivetran_snapshot %}

{{
    config(
        strategy='dbt_history.versions',
        unique_key='id',
        check_cols=['col1', 'col2'],
        updated_at='changed_at',
        hard_deletes='invalidate',
        snapshot_meta_column_names={
            'dbt_valid_from': '_fivetran_start',
            'dbt_valid_to': '_fivetran_end',
        },
        dbt_valid_to_current="timestamp'9999-12-31 23:59:59.999 UTC'",
        meta={'history': {'convention': 'fivetran'}},
    )
}}

select * from {{ ref('fivetran_snapshot_source') }}

{% endsnapshot %}
