{#
    Merges the write's content into the current one, three-way against the base it names:
    struct<content, clashes>, NULL if there is nothing to merge.

        base {x: 1, y: 1}    now {x: 2, y: 1}    write {x: 1, y: 5}    ->  {x: 2, y: 5}
        base {x: 1, y: 1}    now {x: 2, y: 1}    write {x: 9, y: 1}    ->  clash: x

    A column is one attribute; in a column with JSON each top-level attribute is one, and missing
    JSON in the base has none (`_common_content`). A base that is not a known state of the feature
    is a clash, because the changes since then are unknown.
#}
{% macro _merged(features) %}
if(
    w.base_uuid is null or w.on_version_conflict <> 'MERGE'
        or not coalesce(x.now.action <> 'DELETE' and w.base_uuid <> lower(x.now.uuid), false),
    cast(null as {{ dbt_history._merged_type(features) }}),
    element_at(
        transform(
            transform(
                array(coalesce(
                    get(filter(
                        acc.new_states,
                        state -> lower(state.uuid) = w.base_uuid and state.seq = state.i
                        {%- if features.on_branches %}
                            and {{ dbt_history._is_of_line('w', 'state.branch', 'state.txn') }}
                        {%- endif %}
                    ), 0).content,
                    w.base
                )),
                base -> if(
                    base is null,
                    null,
                    {{ dbt_history._common_content(
                        features, 'w.content', 'x.now.content',
                    ) | indent(20) }}
                )
            ),
            base -> cast(named_struct(
                'content', named_struct(
                    {%- for name in features.payload %}
                    'p{{ loop.index0 }}', {{ dbt_history._merged_value(
                        features, name, loop.index0,
                    ) | indent(20) }}{{ ',' if not loop.last }}
                    {%- endfor %}
                ),
                'clashes', base is null
                {%- for name in features.payload %}
                    or {{ dbt_history._clashes(features, name, loop.index0) | indent(20) }}
                {%- endfor %}
            ) as {{ dbt_history._merged_type(features) }})
        ),
        1
    )
)
{%- endmacro %}


{% macro _merged_type(features) %}
    {%- do return('struct<content: ' ~ features.content_type ~ ', clashes: boolean>') -%}
{% endmacro %}


{#
    A column of the merged content: the write's value if the write changed it, else the current one.
#}
{% macro _merged_value(
    features, name, place, base_side='base', my_side='w.content', their_side='x.now.content'
) %}
    {%- set base, mine, theirs = base_side ~ '.p' ~ place, my_side ~ '.p' ~ place, their_side ~ '.p'
        ~ place -%}
    {%- set is_whole -%}
if(
    {{ dbt_history._content_value(features, my_side, name, place) }}
        <=> {{ dbt_history._content_value(features, base_side, name, place) }},
    {{ theirs }},
    {{ mine }}
)
    {%- endset -%}
    {%- if name | lower not in features.json -%} {%- do return(is_whole) -%} {%- endif -%}
    {%- set sql -%}
if(
    {{ dbt_history._attributes(base) }} is null or {{ dbt_history._attributes(mine) }} is null
        or {{ dbt_history._attributes(theirs) }} is null,
    {{ is_whole }},
    element_at(transform(
        array(named_struct(
            'base', {{ dbt_history._attributes(base) }},
            'mine', {{ dbt_history._attributes(mine) }},
            'theirs', {{ dbt_history._attributes(theirs) }}
        )),
        side -> to_json(map_from_entries(transform(
            filter(
                array_union(map_keys(side.theirs), map_keys(side.mine)),
                name -> if(
                    try_element_at(side.mine, name) <=> try_element_at(side.base, name),
                    try_element_at(side.theirs, name),
                    try_element_at(side.mine, name)
                ) is not null
            ),
            name -> struct(name, parse_json(if(
                try_element_at(side.mine, name) <=> try_element_at(side.base, name),
                try_element_at(side.theirs, name),
                try_element_at(side.mine, name)
            )))
        )))
    ), 1)
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# Whether both sides changed the column, or an attribute of it, to different values. #}
{% macro _clashes(features, name, place) %}
    {%- set base = dbt_history._content_value(features, 'base', name, place) -%}
    {%- set mine = dbt_history._content_value(features, 'w.content', name, place) -%}
    {%- set theirs = dbt_history._content_value(features, 'x.now.content', name, place) -%}
    {%- set is_whole = '(not (' ~ mine ~ ' <=> ' ~ base ~ ') and not (' ~ theirs ~ ' <=> ' ~ base
        ~ ') and not (' ~ mine ~ ' <=> ' ~ theirs ~ '))' -%}
    {%- if name | lower not in features.json -%} {%- do return(is_whole) -%} {%- endif -%}
    {%- set base = dbt_history._attributes('base.p' ~ place) -%}
    {%- set mine = dbt_history._attributes('w.content.p' ~ place) -%}
    {%- set theirs = dbt_history._attributes('x.now.content.p' ~ place) -%}
    {%- set sql -%}
if(
    {{ base }} is null or {{ mine }} is null or {{ theirs }} is null,
    {{ is_whole }},
    exists(
        array_union(
            array_union(map_keys({{ base }}), map_keys({{ mine }})), map_keys({{ theirs }})
        ),
        name -> not (try_element_at({{ mine }}, name) <=> try_element_at({{ base }}, name))
            and not (try_element_at({{ theirs }}, name) <=> try_element_at({{ base }}, name))
            and not (try_element_at({{ mine }}, name) <=> try_element_at({{ theirs }}, name))
    )
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The top-level attributes of a JSON object, each as canonical JSON: map<string, string>; NULL if
    it is not an object.
#}
{% macro _attributes(text) %}
    {%- do return(
        "transform_values(try_variant_get(try_parse_json(" ~ text
            ~ "), '$', 'map<string, variant>'), (name, value) -> to_json(value))"
    ) -%}
{% endmacro %}


{#
    The base in the form that the merge needs: missing JSON has no attributes. Beside a side that
    has none either, JSON is compared as a whole, and a missing base stays NULL:

        base      mine      theirs    base of the merge    merged
        NULL      {a}       {b}       {}                   {a, b}
        NULL      NULL      {b}       NULL                 {b}
#}
{% macro _common_content(features, my_side='mine', their_side='theirs') %}
    {%- set values = [] -%}
    {%- for name in features.payload -%}
        {%- set place = 'p' ~ loop.index0 -%}
        {%- set value = 'base.' ~ place -%}
        {%- do values.append(
            'if(' ~ my_side ~ '.' ~ place ~ ' is null or ' ~ their_side ~ '.' ~ place
                ~ ' is null, ' ~ value ~ ', coalesce(' ~ value ~ ", '{}'))"
                if name | lower in features.json else value
        ) -%}
    {%- endfor -%}
    {%- do return(dbt_history._as_content(features, values)) -%}
{% endmacro %}
