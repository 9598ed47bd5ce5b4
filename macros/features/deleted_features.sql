{#
    The features that are deleted and not purged, as a sub-query for the FROM clause: one row per
    feature, its tombstone, which holds the last content. A feature that was created again is not
    included; neither is a purged one, although its states are kept.
#}
{% macro deleted_features(states, id='id', namespace='@ns:com:here:xyz') %}
    {%- set key = dbt_history._quoted(dbt_history._key_columns(id)) -%}
    {%- set sql -%}
(
    select tombstones.* except (`__place`)
    from (
        select
            *,
            row_number() over (partition by {{ key | join(', ') }} order by `i` desc) as `__place`
        from {{ states }}
        where {{ dbt_history._quote(namespace) }}.`action` = 'DELETE'
    ) as tombstones
    left anti join (select * from {{ states }} where `txn_next` is null) as heads
        on
        {%- for name in key %}
        tombstones.{{ name }} <=> heads.{{ name }}{{ ' and' if not loop.last }}
        {%- endfor %}
    where `__place` = 1 and `purged_txn` is null
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
