with actual as (
    select
        customer_id,
        name,
        valid_from,
        valid_to
    from {{ ref('customer_history') }}
),

expected as (
    select
        1 as customer_id,
        'abc' as name,
        timestamp '2024-01-01' as valid_from,
        timestamp '2024-02-01' as valid_to
    union all
    select
        1 as customer_id,
        'def' as name,
        timestamp '2024-02-01' as valid_from,
        cast(null as timestamp) as valid_to
    union all
    select
        2 as customer_id,
        'mno' as name,
        timestamp '2024-01-01' as valid_from,
        timestamp '2024-03-01' as valid_to
),

missing as (
    select * from expected
    except all
    select * from actual
),

unexpected as (
    select * from actual
    except all
    select * from expected
),

final as (
    select
        'missing' as problem,
        missing.*
    from missing
    union all
    select
        'unexpected' as problem,
        unexpected.*
    from unexpected
)

select * from final
