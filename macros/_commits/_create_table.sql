{#
    Creates an empty table, or replaces one: a full refresh, which its commit records (Delta);
    adopts a table that a killed run left behind.
#}
{% macro _create_table(relation, columns, partition_by, properties, replace) %}
    {% set location = dbt_history._location(relation) %}
    {% set create = dbt_history._create_table_sql(
        relation, columns, partition_by, properties, location, replace,
    ) %}
    {% set record = dbt_history._record_setting(relation, {
        'history_operation': 'full_refresh', 'invocation_id': invocation_id,
    }) if replace and not relation.is_iceberg else {} %}
    {% set before = dbt_history._session_settings(record.keys() | list) if record else {} %}
    {% set state = namespace(failed='conflict') %}
    {% for attempt in range(6 if replace else 1) if state.failed == 'conflict' %}
        {% set state.failed = dbt_history._guarded_statement(create, record, before) %}
    {% endfor %}
    {# `create table if not exists` would take over the table that is to be replaced. #}
    {% if state.failed in ['exists', 'conflict'] and not replace and not relation.is_iceberg %}
        {% do dbt_history._recover_table_location(
            relation, columns, partition_by, properties, location,
        ) %}
    {% elif replace and state.failed == 'conflict' %}
        {% do dbt_history._refuse_lost_replace(relation) %}
    {% elif state.failed is not none %}
        {% do dbt_history._refuse_missing_delta(relation, state.failed) %}
        {# Once more without the handler, for Spark's own message. #}
        {% do run_query(create) %}
    {% endif %}
{% endmacro %}


{% macro _refuse_lost_replace(relation) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        model.config.materialized, 'the table was not replaced; its rows are as they were',
        got='other writers changed ' ~ relation ~ ' six times while it was being replaced',
        expected='no other writer during a full refresh', node=dbt_history._node_of_context(),
        way_out='run the full refresh again',
    )) %}
{% endmacro %}


{#
    Spark without Delta's jar, or without its settings: Spark's own message is a Java stack trace of
    two hundred lines.
#}
{% macro _refuse_missing_delta(relation, failed) %}
    {% if failed != 'no delta' or relation.is_iceberg %}
        {% do return(none) %}
    {% endif %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        model.config.materialized, 'Spark has no Delta; no table was created',
        got=relation, node=dbt_history._node_of_context(),
        expected="a Spark that was started with Delta's jar and its two settings",
        way_out='start Spark with spark.jars.packages=io.delta:delta-spark_4.1_2.13:4.4.0 (or the'
            ~ ' jars in spark.jars), '
            ~ 'spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension and '
            ~ 'spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog',
    )) %}
{% endmacro %}


{#
    The table's location already contains files: of a killed run, or of a concurrent run that is
    creating the table. An existing table is registered; this is tried several times, because the
    other run may not have made its first commit yet. Files without a commit are not touched, and
    the table gets another location.
#}
{% macro _recover_table_location(relation, columns, partition_by, properties, location) %}
    {% set location = location or dbt_history._default_location(relation) %}
    {% if dbt_history._register_existing_table(relation, location) %}
        {% do return(none) %}
    {% endif %}
    {% set beside = location ~ '__' ~ invocation_id[:8] %}
    {% do log(
        'dbt_history: the location of ' ~ relation
            ~ ' contains files without a commit; the table is created at ' ~ beside,
        info=true,
    ) %}
    {% do run_query(dbt_history._create_table_sql(
        relation, columns, partition_by, properties, beside, false,
    )) %}
{% endmacro %}


{#
    Registers the Delta table at a location in the catalog; tries several times. Returns whether
    there is one.
#}
{% macro _register_existing_table(relation, location) %}
    {% set take_over = 'create table if not exists ' ~ dbt_history._quoted_relation(relation)
        ~ ' using delta location ' ~ dbt_history._string_literal(location) %}
    {% set state = namespace(failed='exists') %}
    {% for attempt in range(5) if state.failed is not none %}
        {% do run_query(
            "select java_method('java.lang.Thread', 'sleep', " ~ 200 * attempt ~ "L)"
        ) %}
        {% set state.failed = dbt_history._guarded_statement(take_over, {}, {}) %}
    {% endfor %}
    {% if state.failed is none %}
        {% do log(
            'dbt_history: ' ~ relation ~ ' was registered from existing files', info=true,
        ) %}
    {% endif %}
    {% do return(state.failed is none) %}
{% endmacro %}


{#
    Creates one of the package's own tables (numbers, branches, marks) unless it exists; registers
    it if a killed run left its files.
#}
{% macro _create_own_table(relation, create) %}
    {% set failed = dbt_history._guarded_statement(create, {}, {}) %}
    {% set is_left = failed in ['exists', 'conflict'] and not relation.is_iceberg %}
    {% if failed is not none
        and not (
            is_left
                and dbt_history._register_existing_table(
                    relation, dbt_history._default_location(relation),
                )
        ) %}
        {# Once more without the handler, for Spark's own message. #}
        {% do run_query(create) %}
    {% endif %}
    {% do adapter.cache_added(relation) %}
{% endmacro %}


{% macro _create_table_sql(relation, columns, partition_by, properties, location, replace) %}
    create {{ 'or replace table' if replace
        else 'table if not exists' }} {{ dbt_history._quoted_relation(relation) }} (
        {%- for column in columns %}
        {{ dbt_history._quote(column.name) }} {{ dbt_history._ddl_type(column.type) }}{{ ' not null'
            if column.get('not_null') }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    using {{ dbt_history._format(relation) }}
    {%- if partition_by %}
    partitioned by (
        {%- for name in partition_by %}
        {{ name if relation.is_iceberg and '(' in name else dbt_history._quote(name) }}
        {{- ',' if not loop.last }}
        {%- endfor %}
    )
    {%- endif %}
    {%- if location %}
    location {{ dbt_history._string_literal(location) }}
    {%- endif %}
    tblproperties (
        {%- for name, value in properties.items() %}
        {{ dbt_history._string_literal(name) }}
            = {{ dbt_history._string_literal(value) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}


{% macro _location(relation) %}
    {% set root = config.get('location_root') %}
    {% do return(root ~ '/' ~ relation.identifier if root else none) %}
{% endmacro %}
