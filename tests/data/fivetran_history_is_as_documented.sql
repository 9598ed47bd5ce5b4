{#
    The history after the last batch, row for row. `--vars 'fivetran_batches: 2'` on a new table stops after
    batch 2, and this test then compares with the state after it.
#}
{%- set expected -%}
(
    select * except (after_batch, snapshot_end, snapshot_differs)
    from {{ ref('fivetran_history_expected') }}
    where after_batch = {{ var('fivetran_batches', 6) }}
)
{%- endset -%}
{{ dbt_history.test_matches_expected(ref('fivetran_history'), expected) }}
