{#
    Problems of the SELECT's columns, as text: bookkeeping, key and period columns that are missing
    or of another type.
#}
{% macro _check_staged_columns(staged, settings) %}
    {% set convention = settings.convention %}
    {% set problems = [] %}
    {% set types = dbt_history._types_by_name(staged.columns) %}
    {% for name in ['_stage'] + settings.key
        + [
            convention.start, convention.end, convention.active, convention.version_id,
        ] | reject('none') | unique | list %}
        {% if name | lower not in types %}
            {% do problems.append('column ' ~ name ~ ' is missing') %}
        {% endif %}
    {% endfor %}
    {% set expected = {
        '_stage': ['string'], '_batch': ['bigint'], '_order': ['bigint'],
        '_unmodified': ['array<string>'],
    } %}
    {% do expected.update({
        convention.start | lower: [convention.type], convention.end | lower: [convention.type],
    }) %}
    {% if convention.active %}
        {% do expected.update({convention.active | lower: ['boolean']}) %}
    {% endif %}
    {% for name, wanted in expected.items()
        if name in types and not dbt_history._type_fits(types[name], wanted[0]) %}
        {% do problems.append('column ' ~ name ~ ' is ' ~ types[name] ~ ', not ' ~ wanted[0]) %}
    {% endfor %}
    {% for name in types if name in ['_metadata', '_tmp_metadata_row_index'] %}
        {% do problems.append('column ' ~ name ~ ' has a name that Delta reserves') %}
    {% endfor %}
    {% for column in staged.columns %}
        {% if column.name | lower == '__evaluated_at' %}
            {% do problems.append(
                'column __evaluated_at has a name that is reserved for the staged rows: rename it'
            ) %}
        {% elif dbt_history._has_variant(column.type) %}
            {% do problems.append(
                'column ' ~ column.name ~ ' is ' ~ column.type
                    ~ ', which cannot be compared: cast it to string (to_json)'
            ) %}
        {% elif column.name | lower in settings.key | map('lower')
            and not dbt_history._is_comparable(column.type) %}
            {% do problems.append(
                'key column ' ~ column.name ~ ' is ' ~ column.type
                    ~ ', which cannot identify rows'
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Differences between the existing table and the SELECT, as text: a missing column, or a type that
    cannot hold the SELECT's values; with `on_schema_change: fail` also an added or removed column.
#}
{% macro _check_table_columns(staged, table_columns, settings) %}
    {% set convention = settings.convention %}
    {% set problems = [] %}
    {% set types = dbt_history._types_by_name(table_columns) %}
    {% set required = settings.key
        + [
            convention.start, convention.end, convention.active, convention.version_id,
        ] | reject('none') | unique | list %}
    {% for name in required if name | lower not in types %}
        {% do problems.append('the table has no column ' ~ name) %}
    {% endfor %}
    {% for name in [convention.start, convention.end]
        if name | lower in types and types[name | lower] != convention.type %}
        {% do problems.append(
            'column ' ~ name ~ ' of the table is ' ~ types[name | lower]
                ~ ', in the convention it is ' ~ convention.type
        ) %}
    {% endfor %}
    {% set extended = dbt_history._extended_columns(staged, table_columns)
        if settings.on_schema_change == 'append_new_columns' else [] %}
    {% set extended = extended | map(attribute='name') | map('lower') | list %}
    {% for column in staged.columns
        if column.name | lower in types and column.name | lower not in extended %}
        {% if not dbt_history._type_fits(column.type, types[column.name | lower]) %}
            {% do problems.append(
                'column ' ~ column.name ~ ' is ' ~ column.type ~ ', the table has '
                    ~ types[column.name | lower]
            ) %}
        {% endif %}
    {% endfor %}
    {% set added = dbt_history._added_columns(staged, table_columns) %}
    {% if added and settings.on_schema_change == 'fail' %}
        {% do problems.append(
            'the table has no column ' ~ added | map(attribute='name') | join(', ')
                ~ ' (on_schema_change: fail)'
        ) %}
    {% endif %}
    {% set removed = dbt_history._columns_not_selected(staged, table_columns) %}
    {% if removed and settings.on_schema_change == 'fail' %}
        {% do problems.append(
            'the SELECT has no column ' ~ removed | join(', ')
                ~ ', which the table has (on_schema_change: fail; append_new_columns keeps its'
                ~ ' values)'
        ) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{# The columns of the SELECT that the table lacks: {'name', 'type'}, in the order of the SELECT. #}
{% macro _added_columns(staged, table_columns) %}
    {% set known = ['_stage', '_batch', '_order', '_unmodified']
        + table_columns | map(attribute='name') | map('lower') | list %}
    {% set added = [] %}
    {% for column in staged.columns if column.name | lower not in known %}
        {% do added.append(column) %}
    {% endfor %}
    {% do return(added) %}
{% endmacro %}


{# The table's struct columns that have more fields in the SELECT: with its `type`, and `fields`. #}
{% macro _extended_columns(staged, table_columns) %}
    {% set types = dbt_history._types_by_name(staged.columns) %}
    {% set extended = [] %}
    {% for column in table_columns if column.name | lower in types %}
        {% set type = types[column.name | lower] %}
        {% set fields = dbt_history._added_fields(
            column.type, type, dbt_history._quote(column.name),
        ) %}
        {% if fields %}
            {% do extended.append(dict(column, type=type, fields=fields)) %}
        {% endif %}
    {% endfor %}
    {% do return(extended) %}
{% endmacro %}


{# The columns with the types of those of the same name in `extended`. #}
{% macro _with_extended(columns, extended) %}
    {% set found = {} %}
    {% for column in extended %}{% do found.update({column.name: column}) %}{% endfor %}
    {% set result = [] %}
    {% for column in columns %}{% do result.append(found.get(column.name, column)) %}{% endfor %}
    {% do return(result) %}
{% endmacro %}


{#
    The columns of the table after the run: {'columns': all of them, 'added': those that the table
    lacks, 'extended': its structs that get fields}. Without `adds` they stay as they are.
#}
{% macro _columns_of_run(staged, table_columns, adds=true) %}
    {% set added = dbt_history._added_columns(staged, table_columns) if adds else [] %}
    {% set extended = dbt_history._extended_columns(staged, table_columns) if adds else [] %}
    {% do return({
        'columns': dbt_history._with_extended(table_columns, extended) + added, 'added': added,
        'extended': extended,
    }) %}
{% endmacro %}


{#
    The columns of the table whose structs have fewer fields in what was captured: {name: type
    without these fields}.
#}
{% macro _said_columns(captured, staged, table_columns) %}
    {% set said = {} %}
    {% for column in table_columns if column.name | lower in staged.names %}
        {% set type = ((captured or {}).get('said') or {}).get(column.name | lower) %}
        {% do said.update({column.name: type})
            if type and dbt_history._lacks_fields(type, column.type) %}
    {% endfor %}
    {% do return(said) %}
{% endmacro %}


{#
    Columns of a source that `batch_rows` would hand over as bookkeeping: a changed row whose own
    `_batch` is an old number would count as applied, and be lost.
#}
{% macro _check_source_names(captured, staged, select_sql) %}
    {% set problems = [] %}
    {% for name in (captured or {}).get('bookkeeping', []) | unique
        if name | lower in staged.names and dbt_history._event_options(select_sql) %}
        {% do problems.append(
            'column ' ~ name ~ ' of the source has a name that staged rows need: read the source'
                ~ ' through a view that renames it'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}
