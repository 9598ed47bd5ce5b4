{#
    The activity on features, as a sub-query for the FROM clause: one row per state with all its
    columns, and `patch`, for an update the JSON patch back to its predecessor (an array of {op,
    path, value}); NULL for a creation or a deletion, and if the predecessor was cleaned. A range
    that begins at or below the retention horizon fails; one without a start has what is left.

        before   {"name": "Main", "tags": ["a", "b"]}
        state    {"name": "High", "tags": ["a"], "lanes": 2}
        patch    [{"op": "remove", "path": "/lanes"},
                  {"op": "replace", "path": "/name", "value": "Main"},
                  {"op": "add", "path": "/tags/1", "value": "b"}]

    Elements removed from one array are listed last one first, because a JSON patch is applied one
    operation after the other. `content` is the JSON column with the document; given several
    columns, the document has one member for each. System fields (`id`, the namespace except its
    tags) are left out. Use `order by i desc` for the newest first.
#}
{% macro feature_activity(
    states, id='id', content='payload', from_txn=none, to_txn=none, where=none,
    namespace='@ns:com:here:xyz'
) %}
    {%- set xyz = dbt_history._quote(namespace) -%}
    {%- set bounds = dbt_history._range_of_txns('`txn`', from_txn, to_txn, 'feature_activity') -%}
    {%- set terms, starts, ends = bounds.terms, bounds.starts, bounds.ends -%}
    {%- do terms.extend(
        dbt_history._not_cleaned_from(states, starts, ends, 'feature_activity')
    ) -%}
    {%- if where is not none -%} {%- do terms.append('(' ~ where ~ ')') -%} {%- endif -%}
    {%- set item = [] -%}
    {%- for name in dbt_history._key_columns(id) if name | lower != 'branch' -%}
        {%- do item.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- set before = dbt_history._document(content, 'predecessors') -%}
    {%- set after = dbt_history._document(content, 'states') -%}
    {%- set sql -%}
(
    select
        states.*,
        if(
            states.{{ xyz }}.`action` = 'UPDATE' and predecessors.`i` is not null,
            {{ dbt_history._reverse_patch(before, after, namespace) | indent(12) }},
            null
        ) as `patch`
    from (
        select *
        from {{ states }} as all_states
        where {{ terms | join('\n            and ') }}
    ) as states
    left join {{ states }} as predecessors
        on states.{{ xyz }}.`puuid` = predecessors.{{ xyz }}.`uuid`
        {%- for name in item %}
        and states.{{ name }} = predecessors.{{ name }}
        {%- endfor %}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
