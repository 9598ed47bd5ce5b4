{#
    What changed in [from_at, to_at): one row per version that began there, and one per version that
    ended there.

        from_at                                  to_at
          [                                        )
        --|------ a ------)                              a ended:  delete, or update_preimage
                          |--------- b -------------     b began:  insert, or update_postimage

    The first columns are `_change_type` and `_changed_at`, followed by those of the version. With a
    key, an end and a beginning of the same key at the same instant are an update; without one every
    beginning is an insert and every end a delete. The key is `key`, else that of the log or of the
    relation's model; `key=[]` for none.

    A tag names the state in force at its instant, which includes the changes made at that instant.
    Between two tags the changes are therefore those in (from, to]: applied to the state at the
    first tag, they give the state at the second.

        from tag     to tag
           (            ]
        x  |  y     z   |         a change at the first tag is not in the result,
        '--'            '- z      a change at the second tag is
#}
{% macro changeset(relation, from_at, to_at, convention=none, key=none) %}
    {%- set reader = dbt_history._reader(relation, convention, 'changeset') -%}
    {%- set convention = reader.convention -%}
    {%- set range = dbt_history._range(from_at, to_at, reader, 'changeset') -%}
    {%- do range.update({
        'from': dbt_history._after_tag(range.from, from_at, convention),
        'to': dbt_history._after_tag(range.to, to_at, convention),
    }) -%}
    {%- set start = dbt_history._quote(convention.start) -%}
    {%- set until = dbt_history._end_of_period(convention) -%}
    {%- set guard = dbt_history._not_below_retention_horizon(
        reader, range.from, 'changeset', strictly=true,
    ) -%}
    {%- set began = start ~ ' >= ' ~ range.from ~ ' and '
        ~ dbt_history._starts_by(convention, range.to, strictly=true) -%}
    {%- set ended = dbt_history._ended_from(convention, range.from) ~ ' and '
        ~ dbt_history._ended_by(convention, range.to, strictly=true) -%}
    {%- set is_seen = [dbt_history._is_not_empty(convention), guard] | reject('none') -%}
    {%- set names = dbt_history._key_of_changes(relation, key, reader) -%}
    {#- The table is read once: a version that began and ended in the range gives two rows. -#}
    {%- set sides -%}
select
    `_change_type`,
    if(`_change_type` = 'insert', {{ start }}, {{ until }}) as `_changed_at`,
    versions.*
from (
    select * from {{ reader.from }} as stored
    where (({{ began }}) or ({{ ended }}))
        and {{ is_seen | join('\n        and ') }}
) as versions
lateral view explode(array('insert', 'delete')) sides as `_change_type`
where (`_change_type` = 'insert' and {{ began }})
    or (`_change_type` = 'delete' and {{ ended }})
    {%- endset -%}
    {%- do return(dbt_history._paired_changes(sides, dbt_history._quoted(names))) -%}
{% endmacro %}


{# The first point after a tag; any other point as it is. #}
{% macro _after_tag(point, said, convention) %}
    {%- if dbt_history._tag_of(said) is none -%} {%- do return(point) -%} {%- endif -%}
    {%- do return({
        'timestamp': '(' ~ point ~ ' + interval 1 microsecond)',
        'date': 'date_add(' ~ point ~ ', 1)',
        'bigint': '(' ~ point ~ ' + 1L)',
    }[convention.type]) -%}
{% endmacro %}


{#
    The key that pairs an end with a beginning, as a list; empty for none. The `unique_key` of a
    snapshot that is an expression is no column of its table, and pairs nothing.
#}
{% macro _key_of_changes(relation, key, reader) %}
    {%- set log = reader.get('log') -%}
    {%- if key is not none or log -%}
        {%- do return(dbt_history._key_columns(key if key is not none else log.key)) -%}
    {%- endif -%}
    {%- set node = dbt_history._node_of_relation(relation) -%}
    {%- if node is none -%}
        {%- do dbt_history._refuse_unit_test(['key'], 'changeset') if relation is not string -%}
        {%- do return([]) -%}
    {%- endif -%}
    {%- set names = dbt_history._key_of_node(node, has_versions=true) -%}
    {%- for name in names
        if node.resource_type == 'snapshot' and not modules.re.match('^\\w+$', name) -%}
        {%- do return([]) -%}
    {%- endfor -%}
    {%- do return(names) -%}
{% endmacro %}


{# With a key, an end and a beginning of the same key at the same instant are an update. #}
{% macro _paired_changes(sides, keys) %}
    {%- set sql -%}
{%- if not keys -%}
(
    {{ sides | indent(4) }}
)
{%- else -%}
(
    select
        case
            when not `__is_update` then `_change_type`
            when `_change_type` = 'delete' then 'update_preimage'
            else 'update_postimage'
        end as `_change_type`,
        * except (`_change_type`, `__is_update`)
    from (
        select
            *,
            min(`_change_type`) over one_change <> max(`_change_type`) over one_change
                as `__is_update`
        from (
            {{ sides | indent(12) }}
        ) as sides
        window one_change as (partition by {{ keys | join(', ') }}, `_changed_at`)
    ) as changes
)
{%- endif -%}
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
