{#
    dbt's strategy `check`: a row is a new version if a column in `check_cols` differs, NULL included.
    Versions start and end at the times of the runs. Without `updated_at`: two changes with one time
    have the same `dbt_scd_id`, and the second one would end the record.

    The key has two columns; dbt-spark alone stores helper columns for it and fails in the second run.
    dbt compares keys with `=`, so rows with NULL in the key are left out.

    `hard_deletes: ignore`: a station that is missing in the source stays current.
#}
{% snapshot crmp_stations_by_check %}

{{
    config(
        strategy='check',
        unique_key=['network_id', 'native_id'],
        check_cols=['station_id'],
        hard_deletes='ignore',
    )
}}

select
    network_id,
    native_id,
    station_id
from {{ source('crmp', 'meta_station') }}
where
    network_id is not null
    and native_id is not null

{% endsnapshot %}
