{#
    Removes a tag from all tables that have it, or from those named: the versions it protected may
    be cleaned from then on. `dry_run` only says which tables have it.
#}
{% macro drop_tag(tag, table='all', dry_run=false, convention=none, key=none) %}
    {# `tag: 2024` of --args is a number, and the marks have names. #}
    {% set tag = tag | string %}
    {% set dropped = namespace(number=0) %}
    {% set known = [] %}
    {% for table in dbt_history._tables_of_all_kinds(
        table, convention, key, 'drop_tag',
    ) %}
        {% set names = dbt_history._marks_of(table).tags | map(attribute='name') | list %}
        {% do known.extend(names) %}
        {% if tag in names %}
            {% do dbt_history._remove_tag(table, tag) if not dry_run %}
            {% set dropped.number = dropped.number + 1 %}
            {% do log(
                'dbt_history: tag ' ~ tag ~ ' of ' ~ table.name
                    ~ (' would be dropped' if dry_run else ' is dropped'),
                info=true,
            ) %}
        {% endif %}
    {% endfor %}
    {% if not dropped.number %}
        {% do dbt_history._refuse_unknown_tag(tag, known, 'drop_tag') %}
    {% endif %}
{% endmacro %}
