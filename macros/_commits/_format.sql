{#
    The one place that knows what a table's format changes. Whatever differs is a pair of macros,
    `_delta_…` and `_iceberg_…`, behind one of these; all else is the same SQL for both.
    docs/iceberg.md lists the differences.
#}
{% macro _format(relation) %}
    {% do return('iceberg' if relation.is_iceberg else 'delta') %}
{% endmacro %}


{#
    The relation to write with its format: that of the table that is there, else the model's
    `file_format`.
#}
{% macro _target(relation, existing) %}
    {% set target = relation.incorporate(type='table') %}
    {% set is_iceberg = existing.is_iceberg if existing is not none
        else config.get('file_format') == 'iceberg' %}
    {% do return(target.incorporate(is_iceberg=true) if is_iceberg else target) %}
{% endmacro %}


{#
    A relation from dbt's list, marked with its format. What dbt made itself in this run is in the
    list without it: then the node says it, and no query is needed.
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
    A statement that changes nothing but makes a commit, for a record that has its place in the
    order of the batches.
#}
{% macro _empty_commit_sql(relation, property, value) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% if relation.is_iceberg %}
        {% do return('insert into ' ~ name ~ ' select * from ' ~ name ~ ' where false') %}
    {% endif %}
    {% do return(
        'alter table ' ~ name ~ " set tblproperties ('" ~ property ~ "' = '" ~ value ~ "')"
    ) %}
{% endmacro %}


{# A property of the table; none if it is not set. #}
{% macro _table_property(relation, name) %}
    {% set found = namespace(value=none) %}
    {% for row in run_query('show tblproperties ' ~ dbt_history._quoted_relation(relation)).rows
        if row[0] == name %}
        {% set found.value = row[1] | string %}
    {% endfor %}
    {% do return(found.value) %}
{% endmacro %}


{#
    A table of a format that keeps no history, or another than the model asks for. Returns the
    problem, or none.
#}
{% macro _format_problem(existing) %}
    {% set wanted = config.get('file_format') %}
    {% if existing is none or existing.is_view %}
        {% do return(none) %}
    {% elif existing.is_iceberg %}
        {% do return(
            'the target is an Iceberg table, and the model says file_format: delta'
                if wanted == 'delta' else none
        ) %}
    {% elif existing.is_delta is sameas false %}
        {% do return('the target is no Delta table') %}
    {% endif %}
    {% do return(
        'the target is a Delta table, and the model says file_format: iceberg'
            if wanted == 'iceberg' else none
    ) %}
{% endmacro %}


{#
    Whether a table of this name, there or not, is one of Iceberg's: it names no catalog, and the
    session's own is Iceberg's. Then no statement of Delta finds or makes it.
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


{# What needs Delta is refused before anything is written; `expected` says what for. #}
{% macro _refuse_iceberg(table, caller_name, expected) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'this is not there for Iceberg tables; nothing was written',
        got=table ~ ', an Iceberg table', expected=expected,
        way_out='keep this table in Delta (docs/iceberg.md lists what Iceberg tables do not have)',
    )) %}
{% endmacro %}
