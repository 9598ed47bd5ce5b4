{# dbt's persist_docs, without a commit for comments that have not changed. #}
{% macro _persist_docs(relation) %}
    {% if config.persist_relation_docs() and model.description %}
        {% set described = dbt_history._table_comment(relation) %}
        {% if described != model.description %}
            {% do run_query(
                'comment on table ' ~ dbt_history._quoted_relation(relation) ~ ' is '
                    ~ dbt_history._string_literal(model.description)
            ) %}
        {% endif %}
    {% endif %}
    {% if config.persist_column_docs() and model.columns %}
        {% set known = {} %}
        {% for column in dbt_history._table_columns(relation) %}
            {% do known.update({column.name | lower: column}) %}
        {% endfor %}
        {% for name, column in model.columns.items()
            if name | lower in known and column.description %}
            {% set there = known[name | lower] %}
            {% if there.comment != column.description %}
                {% do run_query(
                    'alter table ' ~ dbt_history._quoted_relation(relation) ~ ' alter column '
                        ~ dbt_history._quote(there.name)
                    ~ ' comment ' ~ dbt_history._string_literal(column.description)
                ) %}
            {% endif %}
        {% endfor %}
    {% endif %}
{% endmacro %}
