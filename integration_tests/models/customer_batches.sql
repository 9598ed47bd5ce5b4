{{ config(materialized='view') }}

{% set staged = [
    "'upsert', 1, 1, 'abc', '2024-01-01', null",
    "'upsert', 1, 2, 'mno', '2024-01-01', null",
    "'earliest_start', 2, 1, null, '2024-02-01', null",
    "'upsert', 2, 1, 'def', '2024-02-01', null",
    "'delete', 2, 2, null, null, '2024-03-01'",
] %}

with staged (_stage, _batch, customer_id, name, valid_from, valid_to) as (
    {% for row in staged %}
        select {{ row }} {{ 'union all' if not loop.last }}
    {% endfor %}
),

final as (
    select
        _stage,
        name,
        cast(_batch as bigint) as _batch,
        cast(customer_id as bigint) as customer_id,
        cast(valid_from as timestamp) as valid_from,
        cast(valid_to as timestamp) as valid_to
    from staged
)

select * from final
