{#
    Creates a schema of views that show the tables at one point, a time, a version or a tag: for
    each version table a view of the same name with the versions in force, and for each mirror or
    event table a view with the name and the columns of its main table.

        tables of the project        schema on_new_year
        customers   (versions)       customers      the versions in force
        station_hx  (mirror)         station        the rows of station on that day
        network_hx  (mirror)         network        one instant, so references are consistent

    dbt run-operation create_point_in_time
        --args '{schema: on_new_year, at: "2024-01-01", table: [customers, station_hx]}'

    The views read the history tables, so they change with late data; a tag protects their versions
    from cleaning. `mod_columns` adds `mod_time` and `mod_user`, when and by whom a row was last
    changed, to the views of mirrors and event tables; with `at: now` they show the main tables with
    these two columns.
#}
{% macro create_point_in_time(
    schema, at, table='all', dry_run=false, convention=none, key=none, mod_columns=false
) %}
    {% set tables = dbt_history._tables_of_all_kinds(
        table, convention, key, 'create_point_in_time',
    ) %}
    {% do dbt_history._check_views(tables, schema, at, mod_columns) %}
    {% if not dry_run %}
        {% for table in tables if dbt_history._marks(table.relation) is none %}
            {# The marks tables must exist, so that the views respect later horizons. #}
            {% do dbt_history._create_marks(table.relation) %}
        {% endfor %}
        {% do run_query('create schema if not exists ' ~ dbt_history._quote(schema)) %}
    {% endif %}
    {% for table in tables %}
        {% set view = dbt_history._quote(schema) ~ '.' ~ dbt_history._quote(table.view) %}
        {% set sql = 'create or replace view ' ~ view ~ ' as select * from ' ~ (
            dbt_history._main_rows(table, at, mod_columns) ~ ' as main' if table.log
            else dbt_history.as_of(table.relation, at, table.convention)
        ) %}
        {% if not dry_run %}
            {% do run_query(sql) %}
        {% endif %}
        {% do log(
            'dbt_history: ' ~ view ~ (' would be ' if dry_run else ' is ') ~ table.name ~ ' at '
                ~ at,
            info=true,
        ) %}
        {% do dbt_history._log_unread(table) if table.log %}
    {% endfor %}
{% endmacro %}
