{#
    The columns of a relation, in the form that dbt's other adapters return. dbt-spark's own macro
    returns the raw rows of DESCRIBE, in which `hard_deletes: new_record` finds no column and
    therefore writes NULL for all of them. `adapter.get_columns_in_relation` does not call this
    macro; it omits a column whose name begins with `#`.
#}
{% macro spark__get_columns_in_relation(relation) %}
    {% set columns = [] %}
    {% for column in dbt_history._table_columns(relation) %}
        {% do columns.append(api.Column(column=column.name, dtype=column.type)) %}
    {% endfor %}
    {% do return(columns) %}
{% endmacro %}
