{#
    A view over several spaces, as a sub-query for the FROM clause: one row per feature, from the
    first of `layers` that has it, with the number of that layer in `_layer`.

        layer 1  edits      f            (h deleted)
        layer 2  map        f    g       h
                            1    2       2

    A feature that is deleted in a layer is not in it, so the next layer shows. A layer is a table
    of states, or {'states': table, 'where': condition} for a space of a table that holds several.
    `at`: a transaction of the log that the spaces share, or a tag that all of them have; default
    now.
#}
{% macro layered_features(layers, id='id', at='now') %}
    {% if not execute %}{% do return('(select 1 as not_compiled)') %}{% endif %}
    {%- set layers = dbt_history._checked_layers(layers, id) -%}
    {%- set key = dbt_history._quoted(dbt_history._key_columns(id)) -%}
    {%- set sql -%}
(
    select * except (`__place`)
    from (
        select
            *,
            row_number() over (partition by {{ key | join(', ') }} order by `_layer`) as `__place`
        from (
            {%- for layer in layers %}
            select
                {{ loop.index }} as `_layer`,
                {{ dbt_history._quoted(layers[0].columns) | join(', ') }}
            from {{ dbt_history.as_of(layer.states, at, 'naksha') | indent(12) }} as states
            {%- if layer.where %}
            where {{ layer.where }}
            {%- endif %}
            {%- if not loop.last %}
            union all
            {%- endif %}
            {%- endfor %}
        ) as layers
    ) as ranked
    where `__place` = 1
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The layers as [{'states', 'where', 'columns'}]. All must have the same columns: UNION ALL would
    match others by position.
#}
{% macro _checked_layers(layers, id) %}
    {% set problems, checked = [], [] %}
    {% if layers is mapping or layers is string or layers is not sequence or not layers %}
        {% do problems.append('layers is ' ~ layers ~ ': expected a list of at least one table') %}
        {% set layers = [] %}
    {% endif %}
    {% for layer in layers %}
        {% set layer = layer if layer is mapping and 'states' in layer else {'states': layer} %}
        {% set columns = dbt_history._table_columns(layer.states) | map(attribute='name') | list %}
        {% do checked.append({
            'states': layer.states, 'where': layer.get('where'), 'columns': columns,
        }) %}
        {% set names = columns | map('lower') | list %}
        {% set expected = checked[0].columns | map('lower') | list %}
        {% set other = expected | reject('in', names) | list
            + names | reject('in', expected) | list %}
        {% do problems.append(
            'layer ' ~ loop.index ~ ' and layer 1 differ in column ' ~ other | join(', ')
        ) if other %}
        {% set lacking = (dbt_history._key_columns(id) + ['txn', 'txn_next']) | map('lower')
            | reject('in', names) | list %}
        {% do problems.append(
            'layer ' ~ loop.index ~ ' has no column ' ~ lacking | join(', ')
        ) if lacking %}
        {% for name in layer if name not in ['states', 'where'] %}
            {% do problems.append('layer ' ~ loop.index ~ ' has an unknown entry ' ~ name) %}
        {% endfor %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'layered_features', 'these are not layers of one view',
            got='\n    ' ~ problems | join('\n    '),
            expected="tables of states with the same columns, or {'states': table, 'where': SQL}",
            node=model.unique_id,
        )) %}
    {% endif %}
    {% do return(checked) %}
{% endmacro %}
