{#
    The state of each item as a chain of branches shows it: the first link, nearest first, with any
    state up to its point applies, and a tombstone there hides the others. `at` none means now.
#}
{% macro _visible(states, item, links, namespace) %}
    {%- set sql -%}
(
    select * except (`__place`, `__newest`)
    from (
        select
            *,
            row_number() over (
                partition by {{ dbt_history._quoted(item) | join(', ') }}
                order by `__place`, `i` desc
            ) as `__newest`
        from (
            {%- for link in links %}
            select
                {{ loop.index }} as `__place`,
                *
            from {{ states }}
            where coalesce(`branch`, 'main') = {{ dbt_history._string_literal(link.branch) }}
                and `txn` > {{ link.fork }}L
                {%- if link.at is none %}
                and (`txn_next` is null or `txn_next` = `txn`)
                {%- else %}
                and `txn` <= {{ link.at }}L
                and (`txn_next` is null or `txn_next` > {{ link.at }}L or `txn_next` = `txn`)
                {%- endif %}
            {%- if not loop.last %}
            union all
            {%- endif %}
            {%- endfor %}
        ) as ranked
    ) as nearest
    where `__newest` = 1 and {{ dbt_history._quote(namespace) }}.`action` <> 'DELETE'
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# Terms: each point at which the chain is read was not cleaned. #}
{% macro _not_cleaned(states, links) %}
    {% set reader = {
        'table': dbt_history._relation_of(states), 'convention': dbt_history.convention('naksha'),
    } %}
    {% set terms = [] %}
    {% for point in links | map(attribute='at') | unique if point is not none %}
        {% set term = dbt_history._not_below_retention_horizon(
            reader, point ~ 'L', 'branch_as_of', or_at_tag=true,
        ) %}
        {% if term is not none %}{% do terms.append(term) %}{% endif %}
    {% endfor %}
    {% do return(terms) %}
{% endmacro %}


{# The chain of branches that make up a branch, nearest first: now, or at an earlier point `at`. #}
{% macro _links_of(epochs, branch, at=none) %}
    {% if branch == 'main' %}
        {% do return([{'branch': 'main', 'at': at, 'fork': -1}]) %}
    {% endif %}
    {% set epoch = dbt_history._epoch_of(epochs, dbt_history._present_epoch(epochs, branch), at) %}
    {% set links = [{'branch': branch, 'at': at, 'fork': epoch.fork}] %}
    {% for link in epoch.chain %}
        {% do links.append(dict(link, at=link.at if at is none else [link.at, at] | min)) %}
    {% endfor %}
    {% do return(links) %}
{% endmacro %}


{#
    CTE `sides`: one row per item with states of its own on the branch, with its content in the
    base, on the branch (`mine`) and on the parent now (`theirs`), NULL if it does not exist there;
    then `merged` and `clashes`.

        base      mine      theirs        merged
        x         x         anything      theirs          only they changed it
        x         y         x or y        mine            only we did, or both to the same value
        x         y         -             clash           changed here, deleted there
        {a, b}    {A, b}    {a, B}        {A, B}          by column, and in JSON by attribute
#}
{% macro _sides_ctes(features, states, epochs, epoch) %}
{%- set item = dbt_history._quoted(dbt_history._item(features)) -%}
{%- set names = item | join(', ') -%}
{%- set relations = {
    'base': dbt_history._visible(
        states, dbt_history._item(features), epoch.chain, features.namespace,
    ),
    'mine': dbt_history._visible(
        states, dbt_history._item(features),
        [{'branch': epoch.branch, 'at': none, 'fork': epoch.fork}], features.namespace,
    ),
    'theirs': dbt_history._visible(
        states, dbt_history._item(features), dbt_history._links_of(epochs, epoch.parent),
        features.namespace,
    ),
} -%}
items as (
    select distinct {{ names }}
    from {{ states }}
    where `branch` = {{ dbt_history._string_literal(epoch.branch) }} and `txn` > {{ epoch.fork }}L
),
{%- for side, relation in relations.items() %}

{{ side }}_states as (
    select
        {{ names }},
        {{ dbt_history._quote(features.namespace) }}.`uuid` as uuid,
        {{ dbt_history._content_of(features) }} as content
    from {{ relation | indent(4) }} as {{ side }}
),
{%- endfor %}

compared as (
    select
        {{ 'items.' ~ item | join(', items.') }}
        {%- for side in relations %},
        {{ side }}_states.content as {{ side }},
        {{ side }}_states.uuid as {{ side }}_uuid
        {%- endfor %}
    from items
    {%- for side in relations %}
    left join {{ side }}_states
        on
        {%- for name in item %}
        items.{{ name }} = {{ side }}_states.{{ name }}{{ ' and' if not loop.last }}
        {%- endfor %}
    {%- endfor %}
),

classified as (
    select
        *,
        {{ dbt_history._common_content(features) | indent(8) }} as common,
        case
            when {{ dbt_history._same_side(features, 'mine', 'base') }}
                or {{ dbt_history._same_side(features, 'mine', 'theirs') }}
                then 'theirs'
            when {{ dbt_history._same_side(features, 'theirs', 'base') }} then 'mine'
            when mine is null or theirs is null then 'neither'
            else 'both'
        end as winner
    from compared
),

sides as (
    select
        *,
        case winner
            when 'theirs' then theirs
            when 'mine' then mine
            when 'both' then {{ dbt_history._merged_sides(features) | indent(12) }}
        end as merged,
        case winner
            when 'neither'
                then {{ dbt_history._attributes_of(
                    features, 'coalesce(mine, theirs)',
                ) | indent(12) }}
            when 'both' then {{ dbt_history._clashing_sides(features) | indent(12) }}
            else cast(array() as array<struct<`column`: string, `attribute`: string>>)
        end as clashes
    from classified
)
{%- endmacro %}


{% macro _content_of(features) %}
    {%- set values = [] -%}
    {%- for name in features.payload -%}
        {%- do values.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- do return(dbt_history._as_content(features, values)) -%}
{% endmacro %}


{# Neither side exists, or both do and have the same content. #}
{% macro _same_side(features, left, right) %}
    {%- set terms = ['(' ~ left ~ ' is null) <=> (' ~ right ~ ' is null)'] -%}
    {%- for name in features.payload -%}
        {%- do terms.append(
            dbt_history._content_value(features, left, name, loop.index0) ~ ' <=> '
                ~ dbt_history._content_value(features, right, name, loop.index0)
        ) -%}
    {%- endfor -%}
    {%- do return('((' ~ terms | join(') and (') ~ '))') -%}
{% endmacro %}


{% macro _merged_sides(features) %}
    {%- set values = [] -%}
    {%- for name in features.payload -%}
        {%- do values.append(dbt_history._merged_value(
            features, name, loop.index0, 'common', 'mine', 'theirs',
        )) -%}
    {%- endfor -%}
    {%- do return(dbt_history._as_content(features, values)) -%}
{% endmacro %}


{#
    What both sides changed to different values: array<struct<column, attribute>>; the attribute is
    NULL if a column changed as a whole.
#}
{% macro _clashing_sides(features) %}
    {%- set parts = [] -%}
    {%- for name in features.payload -%}
        {%- set place = loop.index0 -%}
        {%- set base, mine, theirs = dbt_history._content_value(
            features, 'common', name, place,
        ), dbt_history._content_value(features, 'mine', name, place), dbt_history._content_value(
            features, 'theirs', name, place,
        ) -%}
        {%- set whole = 'if(not (' ~ mine ~ ' <=> ' ~ base ~ ') and not (' ~ theirs ~ ' <=> ' ~ base
            ~ ') and not (' ~ mine ~ ' <=> ' ~ theirs ~ '), '
            ~ dbt_history._listed(name, 'array(cast(null as string))') ~ ', '
                ~ dbt_history._listed(name, 'cast(array() as array<string>)') ~ ')' -%}
        {%- if name | lower in features.json -%}
            {%- set base, mine, theirs = dbt_history._attributes(
                'common.p' ~ place
            ), dbt_history._attributes('mine.p' ~ place), dbt_history._attributes(
                'theirs.p' ~ place
            ) -%}
            {%- set by_attribute -%}
filter(
    array_union(array_union(map_keys({{ base }}), map_keys({{ mine }})), map_keys({{ theirs }})),
    name -> not (try_element_at({{ mine }}, name) <=> try_element_at({{ base }}, name))
        and not (try_element_at({{ theirs }}, name) <=> try_element_at({{ base }}, name))
        and not (try_element_at({{ mine }}, name) <=> try_element_at({{ theirs }}, name))
)
            {%- endset -%}
            {%- do parts.append(
                'if(' ~ base ~ ' is null or ' ~ mine ~ ' is null or ' ~ theirs ~ ' is null, '
                    ~ whole ~ ', '
                ~ dbt_history._listed(name, by_attribute) ~ ')'
            ) -%}
        {%- else -%}
            {%- do parts.append(whole) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return('concat(' ~ parts | join(', ') ~ ')') -%}
{% endmacro %}


{#
    Everything in a content as clashes: a JSON object by its attributes, any other column as a
    whole. An empty content is one clash too, named by the first column.
#}
{% macro _attributes_of(features, content) %}
    {%- set parts = [] -%}
    {%- for name in features.payload -%}
        {%- set value = content ~ '.p' ~ loop.index0 -%}
        {%- set whole = 'if(' ~ value
            ~ ' is null, cast(array() as array<string>), array(cast(null as string)))' -%}
        {%- set attributes = 'coalesce(map_keys(' ~ dbt_history._attributes(value) ~ '), ' ~ whole
            ~ ')'
            if name | lower in features.json else whole -%}
        {%- do parts.append(dbt_history._listed(name, attributes)) -%}
    {%- endfor -%}
    {%- do return(
        'get(transform(array(concat(' ~ parts | join(', ') ~ ')), found -> if(size(found) > 0,'
            ~ ' found, '
        ~ dbt_history._listed(features.payload[0], 'array(cast(null as string))') ~ ')), 0)'
    ) -%}
{% endmacro %}


{% macro _listed(column, attributes) %}
    {%- do return(
        "transform(" ~ attributes ~ ", attribute -> cast(named_struct('column', "
            ~ dbt_history._string_literal(column)
        ~ ", 'attribute', attribute) as struct<`column`: string, `attribute`: string>))"
    ) -%}
{% endmacro %}


{#
    The properties of a table of states that the three-way merge needs: key, payload, json, types,
    namespace.
#}
{% macro _features_of(columns, key, payload=none, json=[]) %}
    {% set types = {} %}
    {% set rest = [] %}
    {% set found = dbt_history._namespace_of(columns) %}
    {% set own = [
        'i', 'txn', 'txn_next', 'author_txn', 'created_txn', 'purged_txn', 'resync',
        (found or '') | lower,
    ]
        + key | map('lower') | list %}
    {% for column in columns %}
        {% do types.update({column.name | lower: column.type}) %}
        {% if column.name | lower not in own %}{% do rest.append(column.name) %}{% endif %}
    {% endfor %}
    {% set names = dbt_history._key_columns(payload) or rest %}
    {% set payload_types = [] %}
    {% for name in names %}
        {% do payload_types.append(types.get(name | lower, 'string')) %}
    {% endfor %}
    {% do return({
        'key': key, 'payload': names, 'json': dbt_history._key_columns(json) | map('lower') | list,
        'namespace': found,
        'payload_types': payload_types, 'content_type': dbt_history._content_type(payload_types),
        'branched': true,
    }) %}
{% endmacro %}


{#
    What is wrong with the columns of a write's content, none if nothing is. A write is the whole
    content of a feature, so a column that states and log have and the write lacks would be lost.

        payload: [name]      name    height
        state                a       12
        write                b       -
        next state           b       NULL

    Columns that only the states have, such as computed ones, are in no write (`_payload_of`). But
    one can be a column of the log under another name, which a view gave it. And a column with the
    name of an option of a write, such as `history`, can be that or content. Then `payload` has to
    say which columns are written.
#}
{% macro _payload_problem(columns_of_states, columns_of_log, key, payload) %}
    {% set named = dbt_history._key_columns(payload) %}
    {% set options = dbt_history._write_columns().keys() | list %}
    {% set shared = dbt_history._payload_of(columns_of_states, columns_of_log, key) %}
    {% if named %}
        {% set rest = dbt_history._without(columns_of_log, named + options) %}
        {% set lost = dbt_history._names_in_both(shared, rest | map(attribute='name') | list) %}
        {% do return(
            'payload lacks ' ~ lost | join(', ') ~ ': a write is the whole content of a feature, so'
                ~ ' every feature written would lose it; name all columns, or leave payload out for'
                ~ ' all' if lost else none
        ) %}
    {% endif %}
    {% set unclear = dbt_history._names_in_both(shared, options) %}
    {% set content = dbt_history._features_of(columns_of_states, key).payload %}
    {% set only_states = dbt_history._names_in_both(
        content, dbt_history._without(columns_of_states, shared) | map(attribute='name') | list,
    ) %}
    {% set only_log = dbt_history._without(columns_of_log, key + ['branch'] + options + content) %}
    {% if unclear %}
        {% do return(
            unclear | join(', ') ~ ' in states and log can be content or an option of a write: name'
                ~ ' all columns of the content in payload'
        ) %}
    {% elif only_states and only_log %}
        {% do return(
            'the log has ' ~ only_log | map(attribute='name') | join(', ')
                ~ ', and the states have ' ~ only_states | join(', ')
                ~ ': a renamed column would be lost; if none was renamed, name all columns of the'
                ~ ' content in payload'
        ) %}
    {% endif %}
    {% do return(
        none if shared else 'the log has no column of the content of the states'
    ) %}
{% endmacro %}


{#
    The columns of a write's content: the given ones, else those of the states that the log has,
    without those that every write has.
#}
{% macro _payload_of(columns_of_states, columns_of_log, key, payload=none) %}
    {% set written = dbt_history._without(
        columns_of_log, ['txn', 'position', 'action', 'app_id', 'author', 'message', 'at'],
    ) %}
    {% do return(dbt_history._key_columns(payload) or dbt_history._names_in_both(
        dbt_history._features_of(columns_of_states, key).payload,
        written | map(attribute='name') | list,
    )) %}
{% endmacro %}


{# The namespace column of a table of feature states; none for any other table. #}
{% macro _namespace_of(columns) %}
    {% set found = [] %}
    {% for column in columns if column.type.startswith('struct<action:string,version:bigint,') %}
        {% do found.append(column.name) %}
    {% endfor %}
    {% do return(found | first if found else none) %}
{% endmacro %}
