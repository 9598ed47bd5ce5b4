{#
    An expression that has equal values for equal columns and that `<=>` and `array_sort` can
    compare: a map, which they cannot compare, becomes its sorted entries, at any depth. Other types
    are unchanged.
#}
{% macro _comparable(expression, type, depth=0) %}
    {% set type = type | trim %}
    {% if 'map<' not in type | lower %}
        {% do return(expression) %}
    {% endif %}
    {% set inner = type[type.index('<') + 1:-1] %}
    {% set parts = dbt_history._split_types(inner) %}
    {% set item = 'item' ~ depth %}
    {% if type.lower().startswith('map<') %}
        {% set entry = 'struct(' ~ dbt_history._comparable(item ~ '.key', parts[0], depth + 1)
            ~ ' as key, '
            ~ dbt_history._comparable(item ~ '.value', parts[1], depth + 1) ~ ' as value)' %}
        {% do return(
            'array_sort(transform(map_entries(' ~ expression ~ '), ' ~ item ~ ' -> ' ~ entry ~ '))'
        ) %}
    {% elif type.lower().startswith('array<') %}
        {% do return(
            'transform(' ~ expression ~ ', ' ~ item ~ ' -> '
                ~ dbt_history._comparable(item, inner, depth + 1) ~ ')'
        ) %}
    {% endif %}
    {% set fields = [] %}
    {% for part in parts %}
        {% set name = part[:part.index(':')] | trim | replace('`', '') %}
        {% do fields.append(
            dbt_history._comparable(
                expression ~ '.' ~ dbt_history._quote(name), part[part.index(':') + 1:], depth + 1,
            )
            ~ ' as ' ~ dbt_history._quote(name)
        ) %}
    {% endfor %}
    {% do return('if(' ~ expression ~ ' is null, null, struct(' ~ fields | join(', ') ~ '))') %}
{% endmacro %}


{# A type from DESCRIBE as DDL accepts it: with quoted field names. #}
{% macro _ddl_type(type) %}
    {% set type = type | trim %}
    {% if '<' not in type %}
        {% do return(type) %}
    {% endif %}
    {% set outer = type[:type.index('<')] | lower %}
    {% set written = [] %}
    {% for part in dbt_history._split_types(type[type.index('<') + 1:-1]) %}
        {% if outer == 'struct' %}
            {% set name = part[:part.index(':')] | replace('`', '') %}
            {% do written.append(
                dbt_history._quote(name) ~ ': ' ~ dbt_history._ddl_type(part[part.index(':') + 1:])
            ) %}
        {% else %}
            {% do written.append(dbt_history._ddl_type(part)) %}
        {% endif %}
    {% endfor %}
    {% do return(outer ~ '<' ~ written | join(', ') ~ '>') %}
{% endmacro %}


{# The types between the outermost brackets: 'string,map<string,int>' gives two. #}
{% macro _split_types(inner) %}
    {% set state = namespace(depth=0, part='') %}
    {% set parts = [] %}
    {% for character in inner %}
        {% set state.depth = state.depth
            + (1 if character in '<(' else -1 if character in '>)' else 0) %}
        {% if character == ',' and state.depth == 0 %}
            {% do parts.append(state.part) %}
            {% set state.part = '' %}
        {% else %}
            {% set state.part = state.part ~ character %}
        {% endif %}
    {% endfor %}
    {% do parts.append(state.part) %}
    {% do return(parts) %}
{% endmacro %}


{# True if all `columns` are equal under both prefixes; NULL equals NULL. #}
{% macro _rows_are_equal(columns, left, right) %}
    {%- set terms = [] -%}
    {%- for column in columns -%}
        {%- set name = dbt_history._prefixed(column.name) -%}
        {%- do terms.append(
            dbt_history._comparable(left ~ name, column.type) ~ ' <=> '
                ~ dbt_history._comparable(right ~ name, column.type)
        ) -%}
    {%- endfor -%}
    {%- do return('(' ~ (terms | join(' and ') or 'true') ~ ')') -%}
{% endmacro %}


{# Variants cannot be ordered or compared; maps as data are compared by their entries. #}
{% macro _is_comparable(type) %}
    {% do return('map<' not in type | lower and not dbt_history._has_variant(type)) %}
{% endmacro %}


{#
    True if the type is variant, or contains one in an array, a map or a field; a field may be named
    variant.
#}
{% macro _has_variant(type) %}
    {% do return(
        modules.re.search('(^|[<,:])variant($|[>,])', type | lower | replace(' ', '')) is not none
    ) %}
{% endmacro %}
