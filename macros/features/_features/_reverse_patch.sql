{# The document of a state as JSON text: the column, or an object with one member per column. #}
{% macro _document(content, table) %}
    {%- set names = dbt_history._key_columns(content) -%}
    {%- if names | length == 1 -%}
        {%- do return(table ~ '.' ~ dbt_history._quote(names[0])) -%}
    {%- endif -%}
    {%- set parts = [] -%}
    {%- for name in names -%}
        {%- do parts.append(
            dbt_history._string_literal(name) ~ ', try_parse_json(' ~ table ~ '.'
                ~ dbt_history._quote(name) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- do return('to_json(named_struct(' ~ parts | join(', ') ~ '))') -%}
{% endmacro %}


{#
    The JSON patch from one document back to another, sorted by path; arrays by position. Elements
    removed from one array come last, the last one first, because a removal moves those after it:

        ["a", "b", "c"]  -- remove /1 -->  ["a", "c"]     /2 would be missing
        ["a", "b", "c"]  -- remove /2 -->  ["a", "b"]     -- remove /1 -->  ["a"]

        nodes       every value of a document: its path, kind and text
        removed     only in this document, if the container has the same kind on both sides
        added       only in the other one, likewise, with its whole value
        replaced    in both, different, and not both objects or both arrays, which are compared by
                    their members
#}
{% macro _reverse_patch(before, after, namespace) %}
element_at(
    transform(
        transform(
            array(named_struct(
                'before', {{ dbt_history._nodes(before, namespace) | indent(12) }},
                'after', {{ dbt_history._nodes(after, namespace) | indent(12) }}
            )),
            sides -> named_struct(
                'before',
                map_from_entries(transform(sides.before, node -> struct(node.id, node))),
                'after', map_from_entries(transform(sides.after, node -> struct(node.id, node))),
                'paths', array_distinct(transform(
                    concat(sides.before, sides.after),
                    node -> struct(node.place, node.path, node.id, node.parent)
                ))
            )
        ),
        sides -> concat('[', array_join(transform(array_sort(filter(transform(
            sides.paths,
            node -> named_struct(
                'place', if(
                    try_element_at(sides.before, node.id) is null
                        and try_element_at(sides.before, node.parent).kind = 'array',
                    concat(
                        slice(node.place, 1, size(node.place) - 1),
                        array(translate(element_at(node.place, -1), '0123456789', '9876543210'))
                    ),
                    node.place
                ),
                'operation', case
                    when node.parent is not null and not coalesce(
                        try_element_at(sides.before, node.parent).kind
                            = try_element_at(sides.after, node.parent).kind
                        and try_element_at(sides.after, node.parent).kind in ('object', 'array'),
                        false
                    ) then null
                    when try_element_at(sides.before, node.id) is null
                        then to_json(named_struct('op', 'remove', 'path', node.path))
                    when try_element_at(sides.after, node.id) is null
                        then to_json(named_struct(
                            'op', 'add', 'path', node.path,
                            'value', parse_json(try_element_at(sides.before, node.id).text)
                        ))
                    when try_element_at(sides.before, node.id).text
                        = try_element_at(sides.after, node.id).text
                        then null
                    when try_element_at(sides.before, node.id).kind
                        = try_element_at(sides.after, node.id).kind
                        and try_element_at(sides.after, node.id).kind in ('object', 'array')
                        then null
                    else to_json(named_struct(
                        'op', 'replace', 'path', node.path,
                        'value', parse_json(try_element_at(sides.before, node.id).text)
                    ))
                end
            )
        ), step -> step.operation is not null)), step -> step.operation), ', '), ']')
    ),
    1
)
{%- endmacro %}


{#
    Every value of a JSON document, the document itself first: array<struct<place, path, id, parent,
    kind, text, depth>>. One step per level, up to depth 32; `place` is the order: members by name,
    elements by position. `id` is the path, where an element is no member of the name 0: `~2` is not
    in a path. `parent` is the id of the container.

        {"a": {"0": 1}}     path /a/0    id /a/0
        {"a": [1]}          path /a/0    id /a/~20
#}
{% macro _nodes(document, namespace) %}
{%- set type = 'struct<place: array<string>, path: string, id: string, parent: string, kind:'
    ~ ' string, text: string, depth: int>' -%}
aggregate(
    sequence(0, 31),
    cast(array(named_struct(
        'place', cast(array() as array<string>), 'path', '', 'id', '',
        'parent', cast(null as string),
        'kind', {{ dbt_history._kind_of(dbt_history._bare_document(document, namespace)) }},
        'text', {{ dbt_history._bare_document(document, namespace) }}, 'depth', 0
    )) as array<{{ type }}>),
    (nodes, depth) -> concat(nodes, flatten(transform(
        filter(nodes, node -> node.depth = depth and node.kind in ('object', 'array')),
        node -> if(
            node.kind = 'object',
            transform(
                map_entries({{ dbt_history._attributes('node.text') }}),
                member -> cast(named_struct(
                    'place', concat(node.place, array(member.key)),
                    'path',
                    concat(node.path, '/', replace(replace(member.key, '~', '~0'), '/', '~1')),
                    'id',
                    concat(node.id, '/', replace(replace(member.key, '~', '~0'), '/', '~1')),
                    'parent', node.id, 'kind', {{ dbt_history._kind_of('member.value') }},
                    'text', member.value, 'depth', depth + 1
                ) as {{ type }})
            ),
            transform(
                try_variant_get(try_parse_json(node.text), '$', 'array<variant>'),
                (element, position) -> cast(named_struct(
                    'place', concat(node.place, array(lpad(cast(position as string), 10, '0'))),
                    'path', concat(node.path, '/', cast(position as string)),
                    'id', concat(node.id, '/~2', cast(position as string)),
                    'parent', node.id,
                    'kind', {{ dbt_history._kind_of("coalesce(to_json(element), 'null')") }},
                    'text', coalesce(to_json(element), 'null'), 'depth', depth + 1
                ) as {{ type }})
            )
        )
    )))
)
{%- endmacro %}


{% macro _kind_of(text) %}
    {%- do return(
        "case substr(" ~ text
            ~ ", 1, 1) when '{' then 'object' when '[' then 'array' else 'value' end"
    ) -%}
{% endmacro %}


{#
    The canonical document without system fields: `id`, and in `properties` the namespace except its
    tags. An object is rebuilt from its members; any other value is unchanged.
#}
{% macro _bare_document(document, namespace) %}
    {%- set own = dbt_history._string_literal(namespace) -%}
    {%- set bare_namespace = "map_filter(" ~ dbt_history._attributes('entry.value')
        ~ ", (name, value) -> name = 'tags')" -%}
    {%- set bare_properties -%}
if(
    map_contains_key({{ dbt_history._attributes('member.value') }}, {{ own }}),
    {{ dbt_history._object_of(
        'transform(map_entries(' ~ dbt_history._attributes('member.value')
            ~ '), entry -> if(entry.key = ' ~ own
        ~ " and startswith(entry.value, '{'), struct(entry.key, "
            ~ dbt_history._object_of('map_entries(' ~ bare_namespace ~ ')') ~ ' as value), entry))'
    ) }},
    member.value
)
    {%- endset -%}
    {%- set members = "transform(filter(map_entries(" ~ dbt_history._attributes(document)
        ~ "), member -> member.key <> 'id'), member -> if(member.key = 'properties',"
        ~ " struct(member.key, coalesce("
        ~ bare_properties ~ ', member.value) as value), member))' -%}
    {%- do return(
        'coalesce(' ~ dbt_history._object_of(members) ~ ', to_json(try_parse_json(' ~ document
            ~ ")), 'null')"
    ) -%}
{% endmacro %}


{# Entries of names and JSON texts as the text of a JSON object. #}
{% macro _object_of(entries) %}
    {%- do return(
        "concat('{', array_join(transform(" ~ entries
            ~ ", pair -> concat(to_json(cast(pair.key as variant)), ':', pair.value)), ','), '}')"
    ) -%}
{% endmacro %}
