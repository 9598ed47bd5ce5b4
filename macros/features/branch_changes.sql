{#
    The changes of a branch, as a sub-query for the FROM clause: one row per feature that differs
    from its base, with `change` (inserted, updated, deleted) and its content in the base (`base`),
    on the branch (`mine`) and on the parent now (`theirs`), each a struct of the payload columns,
    NULL if it does not exist there. The base is looked up as in `branch_as_of`: after a rebase a
    view fails until it is built again.
#}
{% macro branch_changes(states, branches, branch, id='id', payload=none, json=[]) %}
    {% if not execute %}{% do return('(select 1 as not_compiled)') %}{% endif %}
    {%- set sides = dbt_history._sides_of(
        states, branches, branch, id, payload, json, 'branch_changes',
    ) -%}
    {%- set features = sides.features -%}
    {%- set sql -%}
(
    with {{ sides.ctes | indent(4) }}

    select
        {{ dbt_history._quoted(dbt_history._item(features)) | join(',\n        ') }},
        case
            when base is null then 'inserted'
            when mine is null then 'deleted'
            else 'updated'
        end as `change`,
        {{ dbt_history._named_content(features, 'base') }} as `base`,
        {{ dbt_history._named_content(features, 'mine') }} as `mine`,
        {{ dbt_history._named_content(features, 'theirs') }} as `theirs`
    from sides
    where not {{ dbt_history._same_side(features, 'mine', 'base') }}
        and {{ sides.unchanged | indent(8) }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
