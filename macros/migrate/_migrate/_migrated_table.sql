{#
    The table of a migration: `table` is `schema.name`, a name in the target's schema, or a
    relation. Returns {'relation', 'columns', 'types': {lower name: type}, 'names': {lower name:
    name}}; refuses anything but a Delta table. With `is_optional`, none if there is no table.
#}
{% macro _migrated_table(table, caller_name, is_optional=false) %}
    {% set wanted = dbt_history._named_relation(table, caller_name) %}
    {% set relation = adapter.get_relation(
        database=wanted.database, schema=wanted.schema, identifier=wanted.identifier,
    ) %}
    {% if relation is none and is_optional %}
        {% do return(none) %}
    {% endif %}
    {% if relation is not none and relation.is_iceberg %}
        {% do dbt_history._refuse_iceberg(
            relation, caller_name, 'a Delta table, whose log records migrations',
        ) %}
    {% elif relation is none or relation.is_view or relation.is_delta is sameas false %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'there is no Delta table of this name',
            got=table,
            expected='schema.table, or a table of the schema ' ~ target.schema,
        )) %}
    {% endif %}
    {% set columns = dbt_history._table_columns(relation) %}
    {% set types = {} %}
    {% set names = {} %}
    {% for column in columns %}
        {% do types.update({column.name | lower: column.type | lower}) %}
        {% do names.update({column.name | lower: column.name}) %}
    {% endfor %}
    {% do return({'relation': relation, 'columns': columns, 'types': types, 'names': names}) %}
{% endmacro %}


{# Why the table cannot be a history table: missing period columns, or a wrong key. #}
{% macro _history_problems(migrated, key) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set problems = [] %}
    {% for name, type in {
        convention.start: 'timestamp', convention.end: 'timestamp', convention.active: 'boolean',
    }.items() %}
        {% if migrated.types.get(name) != type %}
            {% do problems.append(
                'the table has no ' ~ type ~ ' column ' ~ name ~ ': it is not in history mode'
            ) %}
        {% endif %}
    {% endfor %}
    {% set names = dbt_history._key_columns(key) %}
    {% if not names %}
        {% do problems.append(
            'key is missing: name the columns that tell records apart, without the start column'
        ) %}
    {% endif %}
    {% for name in names %}
        {% if name | lower not in migrated.types %}
            {% do problems.append('the table has no column ' ~ name ~ ', named as key') %}
        {% elif dbt_history._period_columns_in([name], convention) %}
            {% do problems.append('key names ' ~ name ~ ', a column of the period') %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{# Problems of a column that a migration changes; `type` is none if any type is accepted. #}
{% macro _column_problems(migrated, column, key, type=none) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set problems = [] %}
    {% set kept = [
        convention.start, convention.end, convention.active, '_stage', '_batch', '_order',
        '_unmodified', '_metadata',
    ] %}
    {% if column is not string or not column | trim %}
        {% do problems.append('not a column name: ' ~ column) %}
        {% do return(problems) %}
    {% endif %}
    {% if column | lower in kept + dbt_history._key_columns(key) | map('lower') | list %}
        {% do problems.append(
            'column ' ~ column ~ ' belongs to the key, the period or the bookkeeping'
        ) %}
    {% endif %}
    {% if type is not none
        and not modules.re.match('^[a-z_]+( *[(] *[0-9]+ *(, *[0-9]+ *)?[)])?$', type | lower) %}
        {% do problems.append(
            'type is ' ~ type ~ ': a simple type such as string, bigint or decimal(10,2)'
        ) %}
    {% elif type is not none and column | lower in migrated.types
        and not dbt_history._is_same_type(migrated.types[column | lower], type) %}
        {% do problems.append(
            'column ' ~ column ~ ' exists as ' ~ migrated.types[column | lower] ~ ', not ' ~ type
        ) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{# Why a migration cannot change the rows of a log; `way_out`: what changes them instead. #}
{% macro _log_problems(migrated, way_out) %}
    {% do return(
        ['the table is a log, whose rows never change: ' ~ way_out]
            if dbt_history._log_lock(migrated.relation) is not none else []
    ) %}
{% endmacro %}


{# Spark has several names for some types: `integer` is `int`, `dec(8)` is `decimal(8,0)`. #}
{% macro _is_same_type(left, right) %}
    {% do return(dbt_history._described_type(left) == dbt_history._described_type(right)) %}
{% endmacro %}


{# A simple type as DESCRIBE names it. #}
{% macro _described_type(type) %}
    {% set type = (type | lower).replace(' ', '').replace('character(', 'char(') %}
    {% set decimal = modules.re.match(
        '^(?:decimal|dec|numeric)(?:[(]([0-9]+)(?:,([0-9]+))?[)])?$', type,
    ) %}
    {% if decimal is not none %}
        {% do return(
            'decimal(' ~ (decimal.group(1) or 10) | int ~ ',' ~ (decimal.group(2) or 0) | int ~ ')'
        ) %}
    {% endif %}
    {% do return({
        'integer': 'int', 'long': 'bigint', 'short': 'smallint', 'byte': 'tinyint', 'real': 'float',
        'text': 'string', 'timestamp_ltz': 'timestamp',
    }.get(type, type)) %}
{% endmacro %}


{% macro _refuse_migration(problems, migrated, caller_name) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'the migration is not possible; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            node=migrated.relation | string,
        )) %}
    {% endif %}
{% endmacro %}


{#
    SQL: the row is no tombstone of `late_events`, whose data columns must remain NULL. The key is
    the one in the table's log, else that of its model; without a key, and in a table without
    periods, no row counts as a tombstone.
#}
{% macro _is_no_tombstone(migrated, caller_name) %}
    {% set convention = dbt_history.convention(
        dbt_history._convention_of(migrated.relation, none, caller_name)
    ) %}
    {% set period = [convention.start, convention.end, convention.active or convention.end] %}
    {% if period | reject('none') | map('lower') | reject('in', migrated.types) | list
        or not convention.end or migrated.types[convention.start | lower] != convention.type
        or migrated.types[convention.end | lower] != convention.type %}
        {% do return('true') %}
    {% endif %}
    {% set key = dbt_history._commit_log(migrated.relation, '').key
        or dbt_history._key_of(migrated.relation, none, caller_name, or_own=true) %}
    {% do return(
        'not ' ~ dbt_history._is_tombstone_row(
            migrated.columns, dbt_history._key_columns(key), convention,
        ) if key else 'true'
    ) %}
{% endmacro %}
