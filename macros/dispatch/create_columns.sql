{#
    A snapshot with a list as `unique_key` must not store dbt's helper columns: they break its next
    run.
#}
{% macro spark__create_columns(relation, columns) %}
    {% set wanted = [] %}
    {% for column in columns
        if not modules.re.match('^dbt_unique_key(_[0-9]+)?$', column.name | lower) %}
        {% do wanted.append(dbt_history._quote(column.name) ~ ' ' ~ column.data_type) %}
    {% endfor %}
    {% if wanted %}
        {% call statement() %}
            alter table {{ relation }} add columns ({{ wanted | join(', ') }})
        {% endcall %}
    {% endif %}
{% endmacro %}
