{#
    The changes of an `_hx` table, of all items or of one: which row changed how, when, and by whom.

        own id      3           7            8                  9
        item a      a=1 b=2     a=5 b=2      a=5 b=2 deleted    a=5 b=2
        found       insert      update       delete             insert

    With column='a' all four are found, with column='b' all but the update. A row of the result is
    the row of the table, preceded by `_change_type` and `_previous_hx_id`, the own id of the item's
    previous row (NULL for an insert). A column counts as changed if its value differs; NULL is a
    value, and before an insert and after a deletion there is none.

    `item` is compared in the type of the key's column, which is looked up when the query is
    compiled: 7 is the text '7', not '07'. Of a sub-query the type is not known: give the item as a
    value of its type.
#}
{% macro find_changes(
    hx, key, item=none, from_at=none, to_at=none, user=none, column=none, kind=none, id=none
) %}
    {%- set key = dbt_history._key_columns(key) -%}
    {%- set own_id = dbt_history._quote(dbt_history._hx_id(hx, id, 'find_changes')) -%}
    {%- set columns = dbt_history._key_columns(column) -%}
    {%- set kinds = [kind] if kind is string else kind or [] -%}
    {%- set item = {key[0]: item} if item is not none and item is not mapping and key | length == 1
        else item -%}
    {%- set there = dbt_history._searched_columns(hx, item) -%}
    {%- do dbt_history._refuse_search(key, item, kinds, there) -%}
    {%- set reader = {'convention': {'type': 'timestamp'}, 'table': none} -%}
    {%- set found = [] -%}
    {%- if from_at is not none -%}
        {%- do found.append(
            '`mod_time` >= ' ~ dbt_history._point(from_at, reader, 'find_changes')
        ) -%}
    {%- endif -%}
    {%- if to_at is not none -%}
        {%- do found.append('`mod_time` < ' ~ dbt_history._point(to_at, reader, 'find_changes')) -%}
    {%- endif -%}
    {%- if user is not none -%}
        {%- do found.append('`mod_user` = ' ~ dbt_history._string_literal(user)) -%}
    {%- endif -%}
    {%- if kinds -%}
        {%- do found.append("`_change_type` in ('" ~ kinds | join("', '") ~ "')") -%}
    {%- endif -%}
    {%- if columns -%}{%- do found.append('`__differs`') -%}{%- endif -%}
    {%- set sql -%}
(
    select * except (`__was_deleted`{{ ', `__differs`' if columns }}) from (
        select
            case
                when coalesce(`deleted`, false) then 'delete'
                when `__was_deleted` then 'insert'
                else 'update'
            end as `_change_type`,
            if(`__was_deleted`, null, `__previous`) as `_previous_hx_id`,
            * except (`__previous`)
        from (
            select
                *,
                lag({{ own_id }}) over item as `__previous`,
                coalesce(
                    lag(`deleted`) over item, lag({{ own_id }}) over item is null
                ) as `__was_deleted`
                {%- if columns %},
                not (
                    {%- for name in columns %}
                    {%- set now = dbt_history._quote(name) %}
                    {{ 'and ' if not loop.first }}if(`deleted`, null, {{ now }}) <=> lag(
                        if(`deleted`, null, {{ now }})
                    ) over item
                    {%- endfor %}
                ) as `__differs`
                {%- endif %}
            from {{ dbt_history._read_from(hx) }} as log
            {%- if item is not none %}
            where {{ dbt_history._key_filter(item, there) }}
            {%- endif %}
            window item
                as (partition by {{ dbt_history._quoted(key) | join(', ') }} order by {{ own_id }})
        ) as rows
    ) as changes
    {%- if found %}
    where {{ found | join('\n        and ') }}
    {%- endif %}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The columns of the table if an item is searched; none of a sub-query, or of a table that does
    not exist yet.
#}
{% macro _searched_columns(hx, item) %}
    {% set is_table = execute and item is mapping and hx is not string and not hx.is_cte
        and load_relation(hx) is not none %}
    {% do return(dbt_history._table_columns(hx) if is_table else []) %}
{% endmacro %}


{% macro _refuse_search(key, item, kinds, columns) %}
    {% set problems = [] %}
    {% if item is not none
        and (
            item is not mapping
                or item.keys() | map('lower') | sort | list != key | map('lower') | sort | list
        ) %}
        {% do problems.append(
            'item is not a value for each of ' ~ key | join(', ') ~ ': ' ~ item
        ) %}
    {% elif item is not none %}
        {% for name, value in item.items() if value is none %}
            {% do problems.append('item: ' ~ name ~ ' has no value') %}
        {% endfor %}
        {% do problems.extend(dbt_history._key_problems(item, columns, 'item')) %}
    {% endif %}
    {% for kind in kinds if kind not in ['insert', 'update', 'delete'] %}
        {% do problems.append('unknown kind ' ~ kind) %}
    {% endfor %}
    {% if not key %}
        {% do problems.append('there is no key') %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'find_changes', 'these arguments are not valid',
            got='\n    ' ~ problems | join('\n    '),
            expected='item: {key column: value, ...}; kind: insert, update or delete',
        )) %}
    {% endif %}
{% endmacro %}
