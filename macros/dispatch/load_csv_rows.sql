{#
    Loads seeds without changing their values. Every cell is passed as an escaped text literal and
    cast once, in the SELECT: bigint and decimal stay exact, timestamps keep microseconds (UTC where
    the cell names no zone). An empty cell and the text `null` are NULL; for empty strings the seed
    names a marker: `meta: {history: {empty_string: '<empty>'}}`. A cell that is not a value of its
    type fails the seed.
#}
{% macro spark__load_csv_rows(model, agate_table) %}
    {% set statements = [] %}
    {% set types = dbt_history._seed_types(model, agate_table) %}
    {% set empty_string = dbt_history._history_meta(model, 'load_csv_rows').get('empty_string') %}
    {% set type_list = types.values() | list %}
    {% set columns = [] %}
    {% for name in agate_table.column_names %}
        {% do columns.append(dbt_history._seed_column('c' ~ loop.index, name, types[name])) %}
    {% endfor %}
    {% for chunk in agate_table.rows | batch(get_batch_size()) %}
        {% set rows = [] %}
        {% for row in chunk %}
            {% set cells = [] %}
            {% for cell in row %}
                {% do cells.append(dbt_history._seed_literal(
                    cell, type_list[loop.index0], empty_string,
                )) %}
            {% endfor %}
            {% do rows.append('(' ~ cells | join(', ') ~ ')') %}
        {% endfor %}
        {% set sql %}
insert into {{ this.render() }}
select
    {{ columns | join(',\n    ') }}
from values
    {{ rows | join(',\n    ') }}
as cells(
    {%- for name in agate_table.column_names %}c{{ loop.index }}{{ ', ' if not loop.last }}
    {%- endfor -%}
)
        {% endset %}
        {% do adapter.add_query(sql, abridge_sql_log=True) %}
        {% do statements.append(sql) %}
    {% endfor %}
    {% do return(statements[0] if statements else '') %}
{% endmacro %}


{# Column name to stored type: `column_types` of the seed, else the type that dbt inferred. #}
{% macro _seed_types(model, agate_table) %}
    {% set stated = model['config'].get('column_types') or {} %}
    {% set types = {} %}
    {% for name in agate_table.column_names %}
        {% do types.update({
            name: stated.get(name) or adapter.convert_type(agate_table, loop.index0)
        }) %}
    {% endfor %}
    {% do return(types) %}
{% endmacro %}


{#
    A text cell as a value of its type. Text that is not a value of the type fails, with ANSI mode
    on or off.
#}
{% macro _seed_column(cell, name, type) %}
    {% set kind = type | lower | trim %}
    {% set text = 'cast(' ~ cell ~ ' as string)' %}
    {% if kind == 'string' %}
        {% do return(text) %}
    {% elif kind.startswith('varchar') or kind.startswith('char') or kind == 'binary' %}
        {% do return('cast(' ~ text ~ ' as ' ~ type ~ ')') %}
    {% elif kind.startswith('array') or kind.startswith('map') or kind.startswith('struct') %}
        {% do return(
            'from_json(' ~ text ~ ', ' ~ dbt_history._text_literal(type)
                ~ ", map('mode', 'FAILFAST', 'timeZone', 'UTC'))"
        ) %}
    {% endif %}
    {% set problem = 'seed column ' ~ name ~ ' is ' ~ type ~ ', which this is not: ' %}
    {% do return(
        'case when ' ~ cell ~ ' is not null then coalesce(try_cast(' ~ text ~ ' as ' ~ type
            ~ '), cast(raise_error(concat('
        ~ dbt_history._text_literal(problem) ~ ', ' ~ cell ~ ')) as ' ~ type ~ ')) end'
    ) %}
{% endmacro %}


{# One cell of the file as a text literal, or null. #}
{% macro _seed_literal(cell, type, empty_string) %}
    {% if cell is none %}
        {% do return('null') %}
    {% endif %}
    {% set kind = type | lower | replace(' ', '') %}
    {% set text = cell.isoformat() if cell.isoformat is defined else cell | string %}
    {% if kind.startswith('string') or kind.startswith('varchar') or kind.startswith('char') %}
        {% set text = '' if empty_string is not none and text == empty_string else text %}
    {% elif kind == 'timestamp' %}
        {% set text = dbt_history._utc_text(text) %}
    {% elif kind.startswith('array<') and not text.strip().startswith('[') %}
        {% set text = dbt_history._json_of_list(text, kind[6:-1]) %}
    {% endif %}
    {% do return(dbt_history._text_literal(text)) %}
{% endmacro %}


{# A time without a zone is UTC, whatever the session's time zone; a date is midnight UTC. #}
{% macro _utc_text(text) %}
    {% set text = text | trim %}
    {% set text = text ~ ' 00:00:00' if text | length == 10 else text %}
    {% do return(
        text if modules.re.search('([zZ]|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$', text[10:])
            else text ~ 'Z'
    ) %}
{% endmacro %}


{#
    A comma-separated list as JSON: `a, b` of array<string> is ["a", "b"]; numbers and booleans are
    not quoted.
#}
{% macro _json_of_list(text, element_type) %}
    {% set is_bare = modules.re.match(
        '^(tinyint|smallint|int|integer|bigint|long|float|double|boolean|decimal.*)$', element_type,
    ) %}
    {% set elements = [] %}
    {% for element in text.split(',') %}
        {% do elements.append(element | trim if is_bare else tojson(element | trim)) %}
    {% endfor %}
    {% do return('[' ~ elements | join(', ') ~ ']') %}
{% endmacro %}


{# Text as a Spark literal: backslash and quote escaped, without variable substitution. #}
{% macro _text_literal(text) %}
    {% do return(
        "'" ~ (text | string).replace('\\', '\\\\').replace("'", "\\'").replace('${', '$\\u007B')
            ~ "'"
    ) %}
{% endmacro %}
