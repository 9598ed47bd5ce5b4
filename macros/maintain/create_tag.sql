{#
    Names a point of one table, several tables or all, and protects it: versions in force there are
    not cleaned.

    dbt run-operation create_tag --args '{tag: year_end, table: all, reason: "audit 2024"}'

    Without `at` the tag names the present: the same time for all tables on a time axis, mirrors and
    event tables among them; the current version for tables that count versions. `at` is a point as
    in `as_of`, or a mapping from table to point. For feature states it is a transaction, which may
    be after the last one; a transaction given by its number is written as `(select max(txid) from
    naksha_transactions where id <= 12)`. `dry_run` checks everything and writes nothing.
#}
{% macro create_tag(
    tag, table='all', at=none, author=none, reason=none, dry_run=false, convention=none, key=none
) %}
    {# `tag: 2024` of --args is a number, and the marks have names. #}
    {% set tag = tag | string %}
    {% set tables = dbt_history._tables_of_all_kinds(
        table, convention, key, 'create_tag',
    ) %}
    {% set now = run_query('select unix_micros(current_timestamp())').rows[0][0] | int %}
    {% set problems = [] %}
    {% for table in tables %}
        {% set marks = dbt_history._marks_of(table) %}
        {% set said = at.get(table.name) if at is mapping and 'tag' not in at else at %}
        {% if said is none and table.convention.type != 'bigint' %}
            {% do table.update({
                'instant': dbt_history._axis_text(
                    now if table.convention.type == 'timestamp' else now // 86400000000,
                    table.convention,
                )
            }) %}
        {% else %}
            {% do dbt_history._find_namespace(table) %}
            {% do table.update({
                'instant': dbt_history._head_of_states(table.relation) | string
                    if said is none and table.namespace
                    else dbt_history._evaluated_point(said, table, 'create_tag')
            }) %}
        {% endif %}
        {% do dbt_history._check_numbered_tag(table, tag, problems) %}
        {% if tag in marks.tags | map(attribute='name') %}
            {% do problems.append(table.name ~ ': the tag exists already') %}
        {% elif table.instant is none %}
            {% do problems.append(table.name ~ ': an empty table has no version to tag') %}
        {% endif %}
        {% do dbt_history._check_above_retention_horizon(table, marks, problems) %}
        {% do dbt_history._note_before_tag(table, tag, marks) %}
        {% if table.log and table.instant is not none %}
            {% for reason in dbt_history._unknown_at(table, table.instant) %}
                {% do problems.append(table.name ~ ': ' ~ reason) %}
            {% endfor %}
        {% endif %}
    {% endfor %}
    {% do dbt_history._refuse_tag(tag, problems, 'create_tag') %}
    {% do dbt_history._set_tag(tables, tag, author, reason, 'create_tag') if not dry_run %}
    {% for table in tables %}
        {% do log(
            'dbt_history: tag ' ~ tag ~ ' of ' ~ table.name
                ~ (' would be ' if dry_run else ' is ') ~ table.instant,
            info=true,
        ) %}
        {% do dbt_history._log_unread(table) if table.log %}
    {% endfor %}
{% endmacro %}
