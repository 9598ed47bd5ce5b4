{{
    config(
        materialized='view',
    )
}}

with

requests as (

    select * from {{ ref('fivetran_requests') }}

),

earliest_start_rows as (

    select
        'earliest_start' as _stage,
        _batch,
        _line,
        id,
        cast(null as string) as col1,
        cast(null as string) as col2,
        _fivetran_start,
        cast(null as timestamp) as _fivetran_end,
        cast(null as boolean) as _fivetran_active,
        cast(null as timestamp) as _fivetran_synced
    from {{ ref('fivetran_earliest_start_files') }}

),

update_rows as (

    select
        'update' as _stage,
        _batch,
        _line,
        id,
        col1,
        col2,
        _fivetran_start,
        _fivetran_end,
        _fivetran_active,
        _fivetran_synced
    from {{ ref('fivetran_update_files') }}

),

upsert_rows as (

    select
        'upsert' as _stage,
        _batch,
        _line,
        id,
        col1,
        col2,
        _fivetran_start,
        _fivetran_end,
        _fivetran_active,
        _fivetran_synced
    from {{ ref('fivetran_upsert_files') }}

),

delete_rows as (

    select
        'delete' as _stage,
        _batch,
        _line,
        id,
        cast(null as string) as col1,
        cast(null as string) as col2,
        cast(null as timestamp) as _fivetran_start,
        _fivetran_end,
        cast(null as boolean) as _fivetran_active,
        cast(null as timestamp) as _fivetran_synced
    from {{ ref('fivetran_delete_files') }}

),

request_rows as (

    select * from earliest_start_rows
    union all
    select * from update_rows
    union all
    select * from upsert_rows
    union all
    select * from delete_rows

),

-- Compare with the marker before any cast: it can occur in columns of every type.
marked as (

    select
        request_rows.*,
        requests.null_string,
        requests.unmodified_string,
        filter(
            array(
                if(request_rows.col1 = requests.unmodified_string, 'col1', null),
                if(request_rows.col2 = requests.unmodified_string, 'col2', null)
            ),
            name -> name is not null
        ) as _unmodified
    from request_rows
    inner join requests
        on request_rows._batch = requests._batch

),

final as (

    select
        _stage,
        _batch,
        _line as _order,
        _unmodified,
        id,
        if(col1 in (null_string, unmodified_string), null, col1) as col1,
        cast(if(col2 in (null_string, unmodified_string), null, col2) as bigint) as col2,
        _fivetran_start,
        _fivetran_end,
        _fivetran_active,
        _fivetran_synced
    from marked

)

select * from final
