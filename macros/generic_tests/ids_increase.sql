{#
    Each row has a unique id, at least 1, and a row with a higher id is not older.

        id         1      2      3      4
        mod_time   10:00  10:00  11:00  10:30     row 4 fails
#}
{% test ids_increase(model, column_name, time='mod_time') %}
{%- set id = dbt_history._quote(column_name) -%}
{%- set time = dbt_history._quote(time) -%}
with log as (

    select {{ id }} as id, {{ time }} as at from {{ model }}

),

neighbours as (

    select
        id,
        at,
        lag(id) over (order by id, at) as id_before,
        max(at) over (
            order by id, at rows between unbounded preceding and 1 preceding
        ) as newest_before
    from log

)

select *
from neighbours
where not (
    id is not null
    and at is not null
    and id >= 1
    and not (id <=> id_before)
    and (newest_before is null or at >= newest_before)
)
{% endtest %}
