{#
    The conflicts that prevent a merge of a branch, as a sub-query for the FROM clause: one row per
    feature, column and attribute that the branch and its parent changed to different values, with
    the three contents. `attribute` is NULL if a column changed as a whole. A feature deleted on one
    side and changed to empty content on the other is one row, with the first payload column.

    Without `payload` all columns of the states are compared. `merge_branch` compares only those
    that the log has, too: name these in `payload` if the states have others, such as computed ones.
    After a rebase a view fails until it is built again, as with `branch_as_of`.
#}
{% macro branch_conflicts(states, branches, branch, id='id', payload=none, json=[]) %}
    {% if not execute %}{% do return('(select 1 as not_compiled)') %}{% endif %}
    {%- set sides = dbt_history._sides_of(
        states, branches, branch, id, payload, json, 'branch_conflicts',
    ) -%}
    {%- set features = sides.features -%}
    {%- set sql -%}
(
    with {{ sides.ctes | indent(4) }}

    select
        {{ dbt_history._quoted(dbt_history._item(features)) | join(',\n        ') }},
        clash.`column`,
        clash.`attribute`,
        {{ dbt_history._named_content(features, 'base') }} as `base`,
        {{ dbt_history._named_content(features, 'mine') }} as `mine`,
        {{ dbt_history._named_content(features, 'theirs') }} as `theirs`
    from sides
    lateral view explode(clashes) clashing as clash
    where {{ sides.unchanged | indent(8) }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
