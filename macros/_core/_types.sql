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
    {% for field in dbt_history._fields_of(type) %}
        {% set name = dbt_history._quote(field.name) %}
        {% do fields.append(
            dbt_history._comparable(expression ~ '.' ~ name, field.type, depth + 1) ~ ' as ' ~ name
        ) %}
    {% endfor %}
    {% do return('if(' ~ expression ~ ' is null, null, struct(' ~ fields | join(', ') ~ '))') %}
{% endmacro %}


{#
    A value whose text shows the clock of UTC: a timestamp becomes the timestamp_ntz of its time in
    UTC, at any depth; other types are unchanged. `to_utc_timestamp` is not exact: it reads UTC's
    clock in the session's time zone, which has no such time where its clocks are put forward.
#}
{% macro _in_utc(expression, type='timestamp', depth=0) %}
    {% set kind = type.split('<')[0] | trim | lower %}
    {% if kind == 'timestamp' %}
        {% do return(
            "timestampadd(microsecond, unix_micros(" ~ expression ~ "), timestamp_ntz'1970-01-01')"
        ) %}
    {% elif '<' not in type or not modules.re.search('\\btimestamp\\b', type | lower) %}
        {% do return(expression) %}
    {% endif %}
    {% set fields = dbt_history._fields_of(type) %}
    {% set item = 'item' ~ depth %}
    {% if kind == 'array' %}
        {% do return(
            'transform(' ~ expression ~ ', ' ~ item ~ ' -> '
                ~ dbt_history._in_utc(item, fields[0].type, depth + 1) ~ ')'
        ) %}
    {% endif %}
    {% set parts = [] %}
    {% for field in fields %}
        {% set part = (item if kind == 'map' else expression) ~ '.'
            ~ dbt_history._quote(field.name) %}
        {% do parts.append(
            dbt_history._in_utc(part, field.type, depth + 1) ~ ' as '
                ~ dbt_history._quote(field.name)
        ) %}
    {% endfor %}
    {% set parts = 'struct(' ~ parts | join(', ') ~ ')' %}
    {% do return(
        'map_from_entries(transform(map_entries(' ~ expression ~ '), ' ~ item ~ ' -> ' ~ parts
            ~ '))'
            if kind == 'map' else 'if(' ~ expression ~ ' is null, null, ' ~ parts ~ ')'
    ) %}
{% endmacro %}


{# A type from DESCRIBE as DDL accepts it: with quoted field names. #}
{% macro _ddl_type(type) %}
    {% set type = type | trim %}
    {% if '<' not in type %}
        {% do return(type) %}
    {% endif %}
    {% set outer = type[:type.index('<')] | lower %}
    {% set written = [] %}
    {% for field in dbt_history._fields_of(type) %}
        {% do written.append(
            (dbt_history._quote(field.name) ~ ': ' if outer == 'struct' else '')
                ~ dbt_history._ddl_type(field.type)
        ) %}
    {% endfor %}
    {% do return(outer ~ '<' ~ written | join(', ') ~ '>') %}
{% endmacro %}


{#
    The fields of a type in order: {'name', 'type'}. Of an array its `element`, of a map its `key`
    and `value`, as ALTER TABLE names them; none for other types.
#}
{% macro _fields_of(type) %}
    {% set type = type | trim %}
    {% set fields = [] %}
    {% if '<' in type %}
        {% set parts = dbt_history._split_types(type[type.index('<') + 1:-1]) %}
        {% if type.lower().startswith('struct<') %}
            {% for part in parts if part | trim %}
                {% do fields.append(dbt_history._named_field(part, type)) %}
            {% endfor %}
        {% else %}
            {% set names = ['element'] if parts | length == 1 else ['key', 'value'] %}
            {% for part in parts %}
                {% do fields.append({'name': names[loop.index0], 'type': part | trim}) %}
            {% endfor %}
        {% endif %}
    {% endif %}
    {% do return(fields) %}
{% endmacro %}


{#
    A field of the struct `type`: {'name', 'type'}. DESCRIBE and `typeof` write names without
    quotes, so a name may have a colon: the last one before the field's type ends it.

        dc:title:string                 dc:title     string
        xml:lang:struct<a:int>          xml:lang     struct<a:int>
        a,b:int                         refused: a comma also separates fields
#}
{% macro _named_field(part, type) %}
    {% set pattern = '^([^<]*):([^:<]*<.*)$' if '<' in part
        else '^(.*):([^:()]*([(][^()]*[)])?[^:()]*)$' %}
    {% set found = modules.re.match(pattern, part | trim) %}
    {% set name = found.group(1) | trim if found else '' %}
    {% if not name or modules.re.search('[,<>]', name) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'types', 'the names of the fields of a struct cannot be told from their types',
            got=type, expected='names without comma, < and >',
            node=dbt_history._node_of_context(),
            way_out='rename the field, or leave it out of the SELECT',
        )) %}
    {% endif %}
    {% do return({'name': name | replace('`', ''), 'type': found.group(2) | trim}) %}
{% endmacro %}


{# Whether both are structs, arrays or maps, so that only their fields can differ. #}
{% macro _is_same_kind(type, other) %}
    {% do return(
        '<' in type and '<' in other
            and type[:type.index('<')] | trim | lower == other[:other.index('<')] | trim | lower
    ) %}
{% endmacro %}


{#
    `type` with the fields that only `other` has at the end of its structs, at any depth. Where both
    have another type, that of `other`.
#}
{% macro _with_more_fields(type, other) %}
    {% if not dbt_history._is_same_kind(type, other) %}
        {% do return(other) %}
    {% endif %}
    {% set fields = dbt_history._fields_of(type) %}
    {% set others = {} %}
    {% for field in dbt_history._fields_of(other) %}
        {% do others.update({field.name | lower: field}) %}
    {% endfor %}
    {% set merged = [] %}
    {% for field in fields %}
        {% set there = others.pop(field.name | lower, field) %}
        {% do merged.append(dict(
            field, type=dbt_history._with_more_fields(field.type, there.type),
        )) %}
    {% endfor %}
    {% set merged = merged + others.values() | list %}
    {% set kind = type[:type.index('<')] | trim | lower %}
    {% set written = [] %}
    {% for field in merged %}
        {% do written.append(
            (dbt_history._field_name(field.name) ~ ':' if kind == 'struct' else '') ~ field.type
        ) %}
    {% endfor %}
    {% do return(kind ~ '<' ~ written | join(',') ~ '>') %}
{% endmacro %}


{#
    `type` with the fields that `other` has in its structs, in that order, at any depth; a field
    that `type` lacks has the type of `other`. Keys of maps stay as they are, as in `_converted`.

        type     struct<a:bigint,b:int>
        other    struct<c:date,a:int>
        result   struct<c:date,a:bigint>
#}
{% macro _with_fields_of(type, other) %}
    {% if not dbt_history._is_same_kind(type, other) %}
        {% do return(type) %}
    {% endif %}
    {% set own = dbt_history._types_by_name(dbt_history._fields_of(type)) %}
    {% set kind = type[:type.index('<')] | trim | lower %}
    {% set written = [] %}
    {% for field in dbt_history._fields_of(other) %}
        {% set found = own.get(field.name | lower, field.type) %}
        {% do written.append(
            (dbt_history._field_name(field.name) ~ ':' if kind == 'struct' else '')
                ~ (found if kind == 'map' and loop.first
                    else dbt_history._with_fields_of(found, field.type))
        ) %}
    {% endfor %}
    {% do return(kind ~ '<' ~ written | join(',') ~ '>') %}
{% endmacro %}


{# A field's name as `typeof` and DESCRIBE write it. #}
{% macro _field_name(name) %}
    {% do return(
        name if modules.re.match('^[A-Za-z_][A-Za-z0-9_]*$', name) is not none else '`' ~ name ~ '`'
    ) %}
{% endmacro %}


{#
    A value of `type` as a value of `wanted`, SQL. Fields of structs are found by name; CAST would
    take them by place, and refuses a field more. One that `type` lacks is NULL.
#}
{% macro _converted(cell, type, wanted, depth=0) %}
    {% if type | lower == wanted | lower %}
        {% do return(cell) %}
    {% elif not dbt_history._is_same_kind(type, wanted) %}
        {% do return('cast(' ~ cell ~ ' as ' ~ dbt_history._ddl_type(wanted) ~ ')') %}
    {% endif %}
    {% set own = {} %}
    {% for field in dbt_history._fields_of(type) %}
        {% do own.update({field.name | lower: field}) %}
    {% endfor %}
    {% set kind = wanted[:wanted.index('<')] | trim | lower %}
    {% set fields = dbt_history._fields_of(wanted) %}
    {% set item = 'item' ~ depth %}
    {% if kind == 'array' %}
        {% do return(
            'transform(' ~ cell ~ ', ' ~ item ~ ' -> ' ~ dbt_history._converted(
                item, own.element.type, fields[0].type, depth + 1,
            ) ~ ')'
        ) %}
    {% elif kind == 'map' %}
        {# Keys keep their type: a converted one could be another's double. #}
        {% do return(
            'transform_values(' ~ cell ~ ', (key' ~ depth ~ ', ' ~ item ~ ') -> '
                ~ dbt_history._converted(item, own.value.type, fields[1].type, depth + 1) ~ ')'
        ) %}
    {% endif %}
    {% set cells = [] %}
    {% for field in fields %}
        {% set found = own.get(field.name | lower) %}
        {% do cells.append(
            (
                dbt_history._converted(
                    cell ~ '.' ~ dbt_history._quote(found.name), found.type, field.type, depth + 1,
                )
                if found else 'cast(null as ' ~ dbt_history._ddl_type(field.type) ~ ')'
            )
            ~ ' as ' ~ dbt_history._quote(field.name)
        ) %}
    {% endfor %}
    {% do return('if(' ~ cell ~ ' is null, null, struct(' ~ cells | join(', ') ~ '))') %}
{% endmacro %}


{# Whether `type` has fields, at any depth, that `said` lacks. #}
{% macro _lacks_fields(said, type) %}
    {% if not dbt_history._is_same_kind(said, type) %}
        {% do return(false) %}
    {% endif %}
    {% for field in dbt_history._fields_with_said('', '', type, said) %}
        {% if not field.said or dbt_history._lacks_fields(field.said, field.type) %}
            {% do return(true) %}
        {% endif %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{#
    SQL: `cell`, a value of `type` that says nothing about the fields that `said` lacks; they keep
    the values of `known`. In an array or a map it is not known which struct belongs to which: it
    stays as it is if `said` is equal in both, see `_loses_fields`.

        known   {a: 1, b: 5}     [{a: 1, b: 5}]     [{a: 1, b: 5}]
        cell    {a: 2}           [{a: 1}]           [{a: 2}]
        kept    {a: 2, b: 5}     [{a: 1, b: 5}]     refused
#}
{% macro _kept_fields(cell, known, type, said) %}
    {% if not dbt_history._lacks_fields(said, type) %}
        {% do return(cell) %}
    {% elif not type.lower().startswith('struct<') %}
        {% do return(
            'if(' ~ dbt_history._says_the_same(cell, known, type, said) ~ ', ' ~ known ~ ', '
                ~ cell ~ ')'
        ) %}
    {% endif %}
    {% set parts = [] %}
    {% for field in dbt_history._fields_with_said(cell, known, type, said) %}
        {% do parts.append(
            (
                dbt_history._kept_fields(field.cell, field.known, field.type, field.said)
                    if field.said else 'coalesce(' ~ field.cell ~ ', ' ~ field.known ~ ')'
            ) ~ ' as ' ~ dbt_history._quote(field.name)
        ) %}
    {% endfor %}
    {% do return(
        'if(' ~ cell ~ ' is null or ' ~ known ~ ' is null, ' ~ cell ~ ', struct('
            ~ parts | join(', ') ~ '))'
    ) %}
{% endmacro %}


{#
    SQL: whether `known` has values, in an array or a map, that `_kept_fields` cannot keep; none if
    there is no such array or map.
#}
{% macro _loses_fields(cell, known, type, said) %}
    {% if not dbt_history._lacks_fields(said, type) %}
        {% do return(none) %}
    {% elif not type.lower().startswith('struct<') %}
        {% do return(
            '(' ~ cell ~ ' is not null and not ' ~ dbt_history._says_nothing_else(known, type, said)
                ~ ' and ' ~ dbt_history._says_nothing_else(cell, type, said) ~ ' and not '
                ~ dbt_history._says_the_same(cell, known, type, said) ~ ')'
        ) %}
    {% endif %}
    {% set parts = [] %}
    {% for field in dbt_history._fields_with_said(cell, known, type, said) if field.said %}
        {% set part = dbt_history._loses_fields(
            field.cell, field.known, field.type, field.said,
        ) %}
        {% do parts.append(part) if part is not none %}
    {% endfor %}
    {% do return('(' ~ parts | join(' or ') ~ ')' if parts else none) %}
{% endmacro %}


{# The fields of a struct: {'name', 'cell', 'known', 'type', 'said': none if it is not there}. #}
{% macro _fields_with_said(cell, known, type, said) %}
    {% set own = {} %}
    {% for field in dbt_history._fields_of(said) %}
        {% do own.update({field.name | lower: field.type}) %}
    {% endfor %}
    {% set fields = [] %}
    {% for field in dbt_history._fields_of(type) %}
        {% set name = dbt_history._quote(field.name) %}
        {% do fields.append(dict(
            field, cell=cell ~ '.' ~ name, known=known ~ '.' ~ name,
            said=own.get(field.name | lower),
        )) %}
    {% endfor %}
    {% do return(fields) %}
{% endmacro %}


{# SQL: whether two values of `type` are equal in the fields of `said`. #}
{% macro _says_the_same(cell, known, type, said) %}
    {% do return(
        '(' ~ dbt_history._comparable(dbt_history._converted(cell, type, said), said) ~ ' <=> '
            ~ dbt_history._comparable(dbt_history._converted(known, type, said), said) ~ ')'
    ) %}
{% endmacro %}


{# SQL: whether all fields of a value that `said` lacks are NULL. #}
{% macro _says_nothing_else(cell, type, said) %}
    {% set same = dbt_history._converted(
        dbt_history._converted(cell, type, said), said, type,
    ) %}
    {% do return(
        '(' ~ dbt_history._comparable(cell, type) ~ ' <=> '
            ~ dbt_history._comparable(same, type) ~ ')'
    ) %}
{% endmacro %}


{#
    The fields that make `stored` the type `type`, if adding fields at the end of its structs does:
    {'path': name for ALTER TABLE, 'type'}. None if the types differ in something else.
#}
{% macro _added_fields(stored, type, path) %}
    {% if stored | lower | replace(' ', '') == type | lower | replace(' ', '') %}
        {% do return([]) %}
    {% elif not dbt_history._is_same_kind(stored, type) %}
        {% do return(none) %}
    {% endif %}
    {% set there = dbt_history._fields_of(stored) %}
    {% set fields = dbt_history._fields_of(type) %}
    {% if there | length > fields | length %}
        {% do return(none) %}
    {% endif %}
    {% set added = [] %}
    {% for field in fields %}
        {% set place = path ~ '.' ~ dbt_history._quote(field.name) %}
        {% if loop.index > there | length %}
            {% do added.append({'path': place, 'type': field.type}) %}
        {% else %}
            {% set own = there[loop.index0] %}
            {% set more = dbt_history._added_fields(own.type, field.type, place)
                if own.name | lower == field.name | lower else none %}
            {% if more is none %}
                {% do return(none) %}
            {% endif %}
            {% do added.extend(more) %}
        {% endif %}
    {% endfor %}
    {% do return(added) %}
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


{#
    True if all `columns` are equal under both prefixes; NULL equals NULL. Of a column with `said`
    only the fields of that type count.
#}
{% macro _rows_are_equal(columns, left, right) %}
    {%- set terms = [] -%}
    {%- for column in columns -%}
        {%- set name = dbt_history._prefixed(column.name) -%}
        {%- do terms.append(
            dbt_history._says_the_same(left ~ name, right ~ name, column.type, column.said)
                if column.said else
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
