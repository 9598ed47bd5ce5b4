{#
    The history after the last landed batch, row for row. `make build` lands and applies the batches
    one by one, and runs this test after each of them.
#}
{%- set last_batch -%}
(
    select least(max(_batch), {{ var('fivetran_batches', 6) }})
    from {{ source('landing', 'fivetran_items_landing') }}
)
{%- endset -%}
{%- set expected -%}
(
    select * except (after_batch, snapshot_end, snapshot_differs)
    from {{ ref('fivetran_history_expected') }}
    where after_batch = {{ last_batch }}
)
{%- endset -%}
{{ dbt_history.test_matches_expected(ref('fivetran_landed_history'), expected) }}
