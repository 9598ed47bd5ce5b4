{#
    Moves a tag to another point: readers of the tag use the new point from then on, and cleaning
    keeps the versions in force there instead. `dry_run` checks everything and writes nothing.

    dbt run-operation move_tag --args '{tag: released, table: naksha_states, at: 17}'
#}
{% macro move_tag(
    tag, at, table='all', author=none, reason=none, dry_run=false, convention=none, key=none
) %}
    {# `tag: 2024` of --args is a number, and the marks have names. #}
    {% set tag = tag | string %}
    {% set problems = [] %}
    {% set tables, known = [], [] %}
    {% for table in dbt_history._tables_of_all_kinds(
        table, convention, key, 'move_tag',
    ) %}
        {% set marks = dbt_history._marks_of(table) %}
        {% set names = marks.tags | map(attribute='name') | list %}
        {% do known.extend(names) %}
        {% if tag in names %}
            {% do table.update({
                'instant': dbt_history._evaluated_point(at, table, 'move_tag'), 'tags': marks.tags,
            }) %}
            {% do dbt_history._check_numbered_tag(table, tag, problems) %}
            {% do dbt_history._check_above_retention_horizon(table, marks, problems) %}
            {% do dbt_history._note_before_tag(table, tag, marks) %}
            {% for reason in (dbt_history._unknown_at(table, table.instant) if table.log else []) %}
                {% do problems.append(table.name ~ ': ' ~ reason) %}
            {% endfor %}
            {% do tables.append(table) %}
        {% endif %}
    {% endfor %}
    {% if at is none %}
        {% do problems.append('at is missing: the point to move the tag to') %}
    {% endif %}
    {% if not tables %}
        {% do dbt_history._refuse_unknown_tag(tag, known, 'move_tag') %}
    {% endif %}
    {% do dbt_history._refuse_tag(tag, problems, 'move_tag') %}
    {% do dbt_history._set_tag(tables, tag, author, reason, 'move_tag') if not dry_run %}
    {% for table in tables %}
        {% for mark in table.tags
            if not dry_run and mark.name == tag and mark.instant != table.instant %}
            {% do dbt_history._remove_tag(table, tag, mark.instant) %}
        {% endfor %}
        {% do log(
            'dbt_history: tag ' ~ tag ~ ' of ' ~ table.name
                ~ (' would be ' if dry_run else ' is ') ~ table.instant,
            info=true,
        ) %}
    {% endfor %}
{% endmacro %}
