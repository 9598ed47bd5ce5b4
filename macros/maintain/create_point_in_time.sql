{#
    Creates a schema of views that show the tables at one point: for each table a view of the same
    name, with the versions in force at a time, a version or a tag.

    dbt run-operation create_point_in_time
        --args '{schema: on_new_year, at: "2024-01-01", table: [customers, orders]}'

    The views read the history tables, so they change with late data; a tag protects their versions
    from cleaning.
#}
{% macro create_point_in_time(schema, at, table='all', dry_run=false, convention=none, key=none) %}
    {% set tables = dbt_history._maintained(table, convention, key, 'create_point_in_time') %}
    {% set problems = [] %}
    {% for table in tables %}
        {% if table.relation.schema | lower == schema | lower %}
            {% do problems.append(table.name ~ ' lies in the schema ' ~ schema ~ ' itself') %}
        {% elif dbt_history._marks(table.relation) is none and not dry_run %}
            {# The marks tables must exist, so that the views respect later horizons. #}
            {% do dbt_history._create_marks(table.relation) %}
        {% endif %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'create_point_in_time', 'a view would replace its own table; nothing was made',
            got=problems | join(', '), expected='another schema',
        )) %}
    {% endif %}
    {% if not dry_run %}
        {% do run_query('create schema if not exists ' ~ dbt_history._quote(schema)) %}
    {% endif %}
    {% for table in tables %}
        {% set view = dbt_history._quote(schema) ~ '.'
            ~ dbt_history._quote(table.relation.identifier) %}
        {% set sql = 'create or replace view ' ~ view ~ ' as select * from '
            ~ dbt_history.as_of(table.relation, at, table.convention) %}
        {% if not dry_run %}
            {% do run_query(sql) %}
        {% endif %}
        {% do log(
            'dbt_history: ' ~ view ~ (' would be ' if dry_run else ' is ') ~ table.name ~ ' at '
                ~ at,
            info=true,
        ) %}
    {% endfor %}
{% endmacro %}
