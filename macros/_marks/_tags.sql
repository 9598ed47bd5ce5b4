{# Refuses a tag before the retention horizon: versions in force there have been removed. #}
{% macro _check_above_retention_horizon(table, marks, problems) %}
    {% if table.instant is not none and marks.retention_horizon is not none %}
        {% set number = run_query(
            'select '
                ~ dbt_history._axis_number(
                    dbt_history._literal(table.instant, table.convention), table.convention,
                )
        ).rows[0][0] | int %}
        {% if number < marks.retention_horizon %}
            {% do problems.append(
                table.name ~ ': ' ~ table.instant ~ ' lies below the horizon '
                    ~ dbt_history._axis_text(marks.retention_horizon, table.convention)
            ) %}
        {% endif %}
    {% endif %}
{% endmacro %}


{# `known`: the names of all tags of the tables. #}
{% macro _refuse_unknown_tag(tag, known, caller_name) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'no table has a tag of this name', got=tag,
        expected=known | unique | sort | join(', ') or 'a tag that create_tag made; there is none',
    )) %}
{% endmacro %}


{% macro _refuse_tag(tag, problems, caller_name) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the tag ' ~ tag ~ ' cannot name this point; no table was changed',
            got='\n    ' ~ problems | join('\n    '),
            way_out='choose a point at or after the horizon'
                ~ (', or drop_tag first' if caller_name == 'create_tag' else ''),
        )) %}
    {% endif %}
{% endmacro %}


{#
    Protects the `instant` of each table by a tag, and looks at the horizons again, because a
    cleaning may have begun since they were checked:

        clean_history             horizon written             versions removed
        here            checked                   tag written, checked again: a problem

    If there is a problem, none of the tables keeps its new point. A point that a tag protected
    before is kept below the horizon, too.
#}
{% macro _add_tags(tables, tag, problems, author, reason) %}
    {% set added, unprotected = [], [] %}
    {% for table in tables %}
        {% set before = dbt_history._marks_of(table).tags %}
        {% set points = before | map(attribute='instant') | list %}
        {% set own = before | selectattr('name', 'equalto', tag) | map(attribute='instant') %}
        {% do added.append(table) if table.instant not in own | list %}
        {% do unprotected.append(table) if table.instant not in points %}
    {% endfor %}
    {% do dbt_history._add_marks(added, 'tag', tag, author, reason) %}
    {% for table in unprotected %}
        {% do dbt_history._check_above_retention_horizon(
            table, dbt_history._marks_of(table), problems,
        ) %}
    {% endfor %}
    {% for table in added if problems %}
        {% do dbt_history._remove_tag(table, tag, table.instant) %}
    {% endfor %}
{% endmacro %}


{# Refuses a tag name that could be read as a number, a range or `all`. #}
{% macro _check_name(name, taken, problems) %}
    {% if not name or not modules.re.match('^[^0-9*\\s]', name | string) or name == taken %}
        {% do problems.append(
            (name or 'the empty name')
                ~ ' is not a valid name: it must not begin with a digit or *, and must not be '
                    ~ taken
        ) %}
    {% endif %}
{% endmacro %}


{#
    On an axis of transaction numbers a tag must not look like a number; the point before the first
    transaction is 0.
#}
{% macro _check_numbered_tag(table, tag, problems) %}
    {% if table.convention.name == 'naksha' %}
        {% do dbt_history._check_name(tag, none, problems) %}
        {% if table.instant is none %}
            {% do table.update({'instant': '0'}) %}
        {% elif table.instant | int < 0 %}
            {% do problems.append(table.name ~ ': ' ~ table.instant ~ ' is not a transaction') %}
        {% endif %}
    {% endif %}
{% endmacro %}


{# Removes a tag of a table, or only one of its points. #}
{% macro _remove_tag(table, tag, instant=none) %}
    {% do run_query(
        'delete from ' ~ dbt_history._quoted_relation(dbt_history._marks(table.relation))
            ~ " where kind = 'tag' and name = "
        ~ dbt_history._string_literal(tag) ~ ' and table_name = '
            ~ dbt_history._string_literal(table.relation.identifier | lower)
        ~ (' and instant = ' ~ dbt_history._string_literal(instant) if instant is not none else '')
    ) %}
{% endmacro %}
