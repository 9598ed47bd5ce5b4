{% snapshot fivetran_snapshot %}

{{
    config(
        strategy='dbt_history.versions',
        unique_key='id',
        check_cols=['col1', 'col2'],
        hard_deletes='invalidate',
        snapshot_meta_column_names={
            'dbt_valid_from': '_fivetran_start',
            'dbt_valid_to': '_fivetran_end',
        },
        dbt_valid_to_current="timestamp'9999-12-31 23:59:59.999 UTC'",
        meta={'history': {'convention': 'fivetran'}},
    )
}}

select
    id,
    col1,
    col2,
    _fivetran_start as changed_at,
    true as _fivetran_active
from {{ ref('fivetran_current') }}

{% endsnapshot %}
