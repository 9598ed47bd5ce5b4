{#
    A statement or a log that differs by table format is a pair of macros, `_delta_…` and
    `_iceberg_…`, behind one entry point, here or in `_entry_points.sql`. Refusals, and steps that
    one format does not need, ask `is_iceberg` where they are. docs/iceberg.md lists the
    differences.
#}
{% macro _format(relation) %}
    {% do return('iceberg' if relation.is_iceberg else 'delta') %}
{% endmacro %}


{#
    The relation to write, with its format: that of the existing table, else the model's
    `file_format`.
#}
{% macro _target(relation, existing) %}
    {% set target = relation.incorporate(type='table') %}
    {% set is_iceberg = existing.is_iceberg if existing is not none
        else config.get('file_format') == 'iceberg' %}
    {% do return(target.incorporate(is_iceberg=true) if is_iceberg else target) %}
{% endmacro %}


{#
    A relation from dbt's cache, with its format. A relation that dbt created in this run is cached
    without a format: then the node's `file_format` gives it, without a query.
#}
{% macro _with_format(relation) %}
    {% if relation is none or relation.is_view or relation.is_iceberg or relation.is_delta %}
        {% do return(relation) %}
    {% endif %}
    {% set made = dbt_history._node_named(relation.schema ~ '.' ~ relation.identifier) %}
    {% set is_iceberg = made is not none and made.config.get('file_format') == 'iceberg' %}
    {% do return(relation.incorporate(is_iceberg=true) if is_iceberg else relation) %}
{% endmacro %}


{#
    A statement that makes a commit without changing rows, for a record that must be ordered among
    the batches.
#}
{% macro _empty_commit_sql(relation, property, value) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% if relation.is_iceberg %}
        {% do return('insert into ' ~ name ~ ' select * from ' ~ name ~ ' where false') %}
    {% endif %}
    {% do return(dbt_history._property_sql(relation, property, value)) %}
{% endmacro %}


{# The statement that sets a property of a table. #}
{% macro _property_sql(relation, name, value) %}
    {% do return(
        'alter table ' ~ dbt_history._quoted_relation(relation) ~ ' set tblproperties ('
            ~ dbt_history._string_literal(name) ~ ' = ' ~ dbt_history._string_literal(value) ~ ')'
    ) %}
{% endmacro %}


{#
    The problem, or none, of an existing table that is neither Delta nor Iceberg, or whose format
    differs from the model's `file_format`.
#}
{% macro _format_problem(existing) %}
    {% set wanted = config.get('file_format') %}
    {% if existing is none or existing.is_view %}
        {% do return(none) %}
    {% elif existing.is_iceberg %}
        {% do return(
            'the target is an Iceberg table, and the model has file_format: delta'
                if wanted == 'delta' else none
        ) %}
    {% elif existing.is_delta is sameas false %}
        {% do return('the target is not a Delta table') %}
    {% endif %}
    {% do return(
        'the target is a Delta table, and the model has file_format: iceberg'
            if wanted == 'iceberg' else none
    ) %}
{% endmacro %}


{#
    Whether a table of this name, existing or not, belongs to an Iceberg catalog: the name has no
    catalog part, and the session's current catalog is Iceberg's. Delta's statements can then
    neither find nor create it.
#}
{% macro _belongs_to_iceberg(table) %}
    {% if (table | string).split('.') | length > 2 %}
        {% do return(false) %}
    {% endif %}
    {% set key = 'spark.sql.catalog.' ~ run_query('select current_catalog()').rows[0][0] %}
    {% do return(
        (dbt_history._session_settings([key]).get(key) or '').startswith('org.apache.iceberg.')
    ) %}
{% endmacro %}


{# Refuses an operation that needs Delta, before anything is written. #}
{% macro _refuse_iceberg(table, caller_name, expected) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'Iceberg tables do not support this; nothing was written',
        got=table ~ ', an Iceberg table', expected=expected,
        way_out='keep this table in Delta (docs/iceberg.md lists what Iceberg does not support)',
    )) %}
{% endmacro %}
