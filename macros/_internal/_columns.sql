{#
    The columns of a table or view, in order: {'name', 'type', 'comment'}. Below them DESCRIBE lists how the table is partitioned, under
    headers that begin with `#`. So may the name of a column, but a column has a type and a header has none.
#}
{% macro _table_columns(relation) %}
    {% set name = dbt_history._relation_name(relation) %}
    {% do return(dbt_history._described_columns('describe ' ~ name, name)) %}
{% endmacro %}


{# The columns of a query, which is not run. #}
{% macro _query_columns(sql) %}
    {% do return(dbt_history._described_columns('describe query ' ~ sql, '(' ~ sql ~ ') as described')) %}
{% endmacro %}


{# Column name to type of a query, without running it. #}
{% macro _types_of_query(query) %}
    {% set types = {} %}
    {% for column in dbt_history._query_columns(query) %}{% do types.update({column.name: column.type}) %}{% endfor %}
    {% do return(types) %}
{% endmacro %}


{# A relation as SQL: quoted where it is one, as it stands where it is text. #}
{% macro _relation_name(relation) %}
    {%- do return(relation if relation is string or not relation.schema else dbt_history._full_name(relation)) -%}
{% endmacro %}


{# DESCRIBE cuts the type of a struct with many fields short (`... 15 more fields`); `typeof` does not. #}
{% macro _described_columns(describe, from) %}
    {% set columns = [] %}
    {% set cut = [] %}
    {% set state = namespace(done=false) %}
    {% for row in run_query(describe).rows if not state.done %}
        {% set state.done = not row[1] %}
        {% if not state.done %}
            {% set column = {'name': row[0], 'type': row[1], 'comment': row[2]} %}
            {% do columns.append(column) %}
            {% do cut.append(column) if modules.re.search('[.]{3} [0-9]+ more fields>', row[1]) %}
        {% endif %}
    {% endfor %}
    {% if cut %}
        {% set types = [] %}
        {% for column in cut %}{% do types.append('typeof(first(' ~ dbt_history._quote(column.name) ~ '))') %}{% endfor %}
        {% set row = run_query('select ' ~ types | join(', ') ~ ' from ' ~ from ~ ' where false').rows[0] %}
        {% for column in cut %}{% do column.update({'type': row[loop.index0]}) %}{% endfor %}
    {% endif %}
    {% do return(columns) %}
{% endmacro %}
