{#
    The columns of a table or view, in order: {'name', 'type', 'comment'}, and `is_partition` of
    those that it is partitioned by. Below them DESCRIBE lists the partitioning, under headers that
    begin with `#`. A column name may begin with `#` too, but a column has a type and a header has
    none.
#}
{% macro _table_columns(relation) %}
    {% set name = dbt_history._relation_name(relation) %}
    {% do return(dbt_history._described_columns('describe ' ~ name, name)) %}
{% endmacro %}


{# The names, in lower case, that none of the columns has. #}
{% macro _missing_columns(names, columns) %}
    {% set there = columns | map(attribute='name') | map('lower') | list %}
    {% do return(names | map('lower') | reject('in', there) | list) %}
{% endmacro %}


{# The columns of a query; the query is not run. #}
{% macro _query_columns(sql) %}
    {% do return(dbt_history._described_columns(
        'describe query ' ~ sql, '(' ~ sql ~ ') as described',
    )) %}
{% endmacro %}


{# The types of columns by their names in lower case. #}
{% macro _types_by_name(columns) %}
    {% set types = {} %}
    {% for column in columns %}{% do types.update({column.name | lower: column.type}) %}{% endfor %}
    {% do return(types) %}
{% endmacro %}


{# Column name to type of a query, without running it. #}
{% macro _types_of_query(query) %}
    {% set types = {} %}
    {% for column in dbt_history._query_columns(query) %}
        {% do types.update({column.name: column.type}) %}
    {% endfor %}
    {% do return(types) %}
{% endmacro %}


{# A relation as SQL: quoted if it is a relation, unchanged if it is text. #}
{% macro _relation_name(relation) %}
    {%- do return(
        relation if relation is string or not relation.schema
            else dbt_history._quoted_relation(relation)
    ) -%}
{% endmacro %}


{#
    DESCRIBE truncates the type of a struct with many fields (`... 15 more fields`); `typeof` does
    not.
#}
{% macro _described_columns(describe, from) %}
    {% set columns = [] %}
    {% set cut = [] %}
    {% set partitions = [] %}
    {% set state = namespace(done=false) %}
    {% for row in run_query(describe).rows %}
        {% set state.done = state.done or not row[1] %}
        {% if state.done %}
            {% do partitions.append(row[0]) if row[1] %}
        {% else %}
            {% set column = {'name': row[0], 'type': row[1], 'comment': row[2]} %}
            {% do columns.append(column) %}
            {% do cut.append(column) if modules.re.search('[.]{3} [0-9]+ more fields>', row[1]) %}
        {% endif %}
    {% endfor %}
    {% for column in columns if column.name in partitions %}
        {% do column.update({'is_partition': true}) %}
    {% endfor %}
    {% if cut %}
        {% set types = [] %}
        {% for column in cut %}
            {% do types.append('typeof(first(' ~ dbt_history._quote(column.name) ~ '))') %}
        {% endfor %}
        {% set row = run_query(
            'select ' ~ types | join(', ') ~ ' from ' ~ from ~ ' where false'
        ).rows[0] %}
        {% for column in cut %}{% do column.update({'type': row[loop.index0]}) %}{% endfor %}
    {% endif %}
    {% do return(columns) %}
{% endmacro %}


{#
    True if every value of type `source` is a value of type `target`, whatever the session's
    settings.
#}
{% macro _type_fits(source, target) %}
    {% set source = source | lower | replace(' ', '') %}
    {% set target = target | lower | replace(' ', '') %}
    {% if source == target or source == 'void'
        or (source == 'array<void>' and target.startswith('array<')) %}
        {% do return(true) %}
    {% endif %}
    {% set wider = {
        'tinyint': ['smallint', 'int', 'bigint', 'float', 'double'],
        'smallint': ['int', 'bigint', 'float', 'double'],
        'int': ['bigint', 'double'],
        'float': ['double'],
    } %}
    {% set texts = modules.re.match('^(var)?char[(]', source) or source == 'string' %}
    {% if target in wider.get(source, [])
        or (texts and (target == 'string' or modules.re.match('^(var)?char[(]', target))) %}
        {% do return(true) %}
    {% endif %}
    {% set from = modules.re.match('^decimal[(]([0-9]+),([0-9]+)[)]$', source) %}
    {% set to = modules.re.match('^decimal[(]([0-9]+),([0-9]+)[)]$', target) %}
    {% if from and to %}
        {% set whole = (from.group(1) | int) - (from.group(2) | int) %}
        {% do return(
            (to.group(1) | int) - (to.group(2) | int) >= whole
                and (to.group(2) | int) >= (from.group(2) | int)
        ) %}
    {% endif %}
    {% do return(false) %}
{% endmacro %}


{# `key` as a list of column names: a name or a list. #}
{% macro _key_columns(key) %}
    {%- set columns = dbt_history._columns_of_key(key) -%}
    {%- if columns is none -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            none, 'the argument key, or unique_key, names no columns', got=tojson(key, key),
            expected='the name of a column, or a list of names',
            node=dbt_history._node_of_context(),
        )) -%}
    {%- endif -%}
    {%- do return(columns) -%}
{% endmacro %}


{#
    The columns that identify a version within its key: start, and the version id if it is another
    column.
#}
{% macro _identity_columns(convention) %}
    {%- do return(
        [convention.start] if convention.version_id | lower == convention.start | lower
            else [convention.start, convention.version_id]
    ) -%}
{% endmacro %}


{% macro _without(columns, names) %}
    {% set names = names | reject('none') | map('lower') | list %}
    {% set rest = [] %}
    {% for column in columns if column.name | lower not in names %}
        {% do rest.append(column) %}
    {% endfor %}
    {% do return(rest) %}
{% endmacro %}


{#
    {'id': 7} as a predicate; none selects all rows. With the table's `columns` a value is compared
    in the type of its column: by Spark's rules for two types the text '07' would equal the number
    7, and a number equal NULL for a text that is no number.
#}
{% macro _key_filter(only, columns) %}
    {% set values = dbt_history._key_values(only, columns) %}
    {% set terms = [] %}
    {% for name, value in (only or {}).items() %}
        {% do terms.append(
            dbt_history._quote(name) ~ ' <=> '
                ~ (
                    'cast(' ~ values[name].text ~ ' as ' ~ values[name].type ~ ')'
                        if name in values
                    else value | string | lower if value is number or value is boolean
                    else dbt_history._string_literal(value)
                )
        ) %}
    {% endfor %}
    {% do return(terms | join(' and ') or 'true') %}
{% endmacro %}


{#
    The values of a key that are compared in the types of their columns: {name: {'text': SQL,
    'type', 'of_column'}}. A decimal keeps all the digits that are given, so that it equals no
    rounded one; a time is UTC unless it names a zone.
#}
{% macro _key_values(only, columns) %}
    {% set values = {} %}
    {% for name, value in (only or {}).items() %}
        {% for column in columns
            if column.name | lower == name | lower and '<' not in column.type
                and value is not none %}
            {% set type = column.type | trim | lower %}
            {% set digits = modules.re.match('^decimal[(]([0-9]+), *([0-9]+)[)]$', type) %}
            {% set text = value | string | lower if value is boolean
                else dbt_history._time_text(value) if type == 'timestamp' else value | string %}
            {% do values.update({name: {
                'text': dbt_history._string_literal(text),
                'type': 'string' if modules.re.match('^(string|varchar|char)', type)
                    else 'decimal(38,' ~ (38 - digits.group(1) | int + digits.group(2) | int) ~ ')'
                        if digits
                    else type,
                'of_column': type,
            }}) %}
        {% endfor %}
    {% endfor %}
    {% do return(values) %}
{% endmacro %}


{#
    The values of a key that are none of their column's type, as texts. A decimal with more places
    than the column has is none, nor is a time a day, a part of a day a time, or a time with a zone
    one without: the cast would change it to another record's key.
#}
{% macro _key_problems(only, columns, argument='only') %}
    {% set values, cells, problems = dbt_history._key_values(only, columns), ['true'], [] %}
    {% for value in values.values() %}
        {% do cells.append('try_cast(' ~ value.text ~ ' as ' ~ value.type ~ ') is null') %}
    {% endfor %}
    {% set row = run_query('select ' ~ cells | join(', ')).rows[0] if values else [] %}
    {% for name, value in values.items() %}
        {% if row[loop.index]
            or not dbt_history._has_places_of_type(only[name], value.of_column)
            or not dbt_history._is_whole_of_type(only[name], value.of_column) %}
            {% do problems.append(
                argument ~ ': ' ~ name ~ ' is no ' ~ value.of_column ~ ': ' ~ only[name]
            ) %}
        {% elif value.of_column.startswith('decimal') and only[name] is float
            and not dbt_history._keeps_digits(only[name]) %}
            {% do problems.append(
                argument ~ ': ' ~ name ~ ' has more digits than a number of YAML keeps: write it'
                    ~ ' in quotes'
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    False if the type has fewer decimal places than the value, zeros at its end aside: a decimal
    (1.50 has one, 1e-3 has three, 25e1 has none), or a timestamp with its six.
#}
{% macro _has_places_of_type(value, type) %}
    {% if type.startswith('timestamp') %}
        {% do return(not modules.re.search('[.][0-9]{6}0*[1-9]', value | string)) %}
    {% endif %}
    {% set decimal = modules.re.match('^decimal[(][0-9]+, *([0-9]+)[)]$', type) %}
    {% set number = modules.re.match(
        '^[+-]?([0-9]*)[.]?([0-9]*)(?:e([+-]?[0-9]+))?$', value | string | trim | lower,
    ) %}
    {% if not decimal or not number %}
        {% do return(not decimal) %}
    {% endif %}
    {% set digits = number.group(1) ~ number.group(2) %}
    {% set zeros = digits | length - digits.rstrip('0') | length %}
    {% set places = number.group(2) | length - zeros - (number.group(3) or 0) | int %}
    {% do return(zeros == digits | length or places <= decimal.group(1) | int) %}
{% endmacro %}


{#
    False if the type is a date and the value is not one whole day, or the type is a time without a
    zone and the value is neither a day nor a time of one: Spark casts both 2024 and
    2024-01-01 10:00 to the day 2024-01-01, 2024 also to its first midnight, and takes no notice of
    a zone. A time of midnight is the day, and a day is its midnight.
#}
{% macro _is_whole_of_type(value, type) %}
    {% set clock = {
        'date': '00?:00(?::00(?:[.]0*)?)?',
        'timestamp_ntz': '[0-9]{1,2}:[0-9]{1,2}(?::[0-9]{1,2}(?:[.][0-9]*)?)?',
    }.get(type) %}
    {% do return(clock is none or modules.re.match(
        '^[+-]?[0-9]{4,7}-[0-9]{1,2}-[0-9]{1,2}(?:[ t]' ~ clock ~ ')?$',
        value | string | trim | lower,
    ) is not none) %}
{% endmacro %}


{#
    Whether a number that YAML has read as a float has no more digits than a float keeps: it may
    have been written as another one.
#}
{% macro _keeps_digits(value) %}
    {% set digits = (value | string | lower).split('e')[0] %}
    {% set digits = modules.re.sub('[^0-9]', '', digits).strip('0') %}
    {% do return(digits | length <= 15 and value | abs < 1000000000000000) %}
{% endmacro %}


{# The partition columns in which Delta stores an empty text as NULL; Iceberg keeps it. #}
{% macro _null_if_empty(columns, target) %}
    {% set names = [] %}
    {% for column in columns
        if column.get('is_partition') and not target.is_iceberg
            and modules.re.match('string|varchar|binary', column.type) %}
        {% do names.append(column.name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{# The names that are in another list, too, whatever their case. #}
{% macro _names_in_both(names, others) %}
    {% set found = [] %}
    {% for name in names if name | lower in others | map('lower') | list %}
        {% do found.append(name) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    Of these columns those that cannot be NULL. No command returns them (Delta rejects `show create
    table`), but an execution plan does: for a column that cannot be NULL, `is null` is folded to a
    constant. A plan shows at most 25 columns (spark.sql.debug.maxToStringFields).
#}
{% macro _not_null_in(table, columns) %}
    {% set found = [] %}
    {% for part in columns | batch(20) %}
        {% set cells = [] %}
        {% for column in part %}
            {% do cells.append(
                dbt_history._quote(column.source or column.name) ~ ' is null as `__null_'
                    ~ loop.index0 ~ '`'
            ) %}
        {% endfor %}
        {% set plan = run_query(
            'explain extended select ' ~ cells | join(', ') ~ ' from ' ~ table
        ).rows | map(attribute=0) | join('\n') %}
        {% set optimized = plan.split('== Optimized Logical Plan ==')[-1] %}
        {% for column in part %}
            {% if modules.re.search('false AS __null_' ~ loop.index0 ~ '#', optimized) %}
                {% do found.append(column.name) %}
            {% endif %}
        {% endfor %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
