{#
    A version of several `_hx` tables together: for each table its greatest own id at an instant.
    One row, with one column per table, named as the table's own id: `orders_hx_id`. A link always
    pointed to the newest row of its table when it was written, so the tuple of an instant is
    consistent.

    `at` may be a tag that all the tables have.
    `collections`: `_hx` tables, or {'history': ..., 'id': ...} where the own id has another name.
#}
{% macro history_tuple(collections, at='now') %}
    {%- set bounds = [] -%}
    {%- for collection in dbt_history._collections(collections, 'history_tuple') -%}
        {%- set point = dbt_history._point(
            at, {'convention': {'type': 'timestamp'}, 'table': collection.table}, 'history_tuple',
        ) -%}
        {%- do bounds.append(
            '(select coalesce(max(' ~ collection.id ~ '), 0L) from ' ~ collection.from
                ~ ' as log where `mod_time` <= ' ~ point
            ~ ') as ' ~ collection.id
        ) -%}
    {%- endfor -%}
    {%- do return('(\n    select\n        ' ~ bounds | join(',\n        ') ~ '\n)') -%}
{% endmacro %}


{# `_hx` tables as a list: {'name', 'id', 'from', 'references'}; ids are quoted. #}
{% macro _collections(collections, caller_name) %}
    {% set found = [] %}
    {% for said in dbt_history._tables_named(collections) %}
        {% set said = said if said is mapping and 'history' in said else {'history': said} %}
        {% do found.append({
            'name': dbt_history._hx_id(said.history, none, caller_name)[:-3],
            'id': dbt_history._quote(dbt_history._hx_id(said.history, said.get('id'), caller_name)),
            'from': dbt_history._read_from(said.history),
            'table': none if said.history is string else said.history,
            'references': said.get('references', []),
        }) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
