{# Adds a fact about a table to the marks of its schema, which are made if they are not there. #}
{% macro _add_mark(table, kind, name=none, instant=none, author=none, reason=none) %}
    {% do dbt_history._add_marks([dict(table, instant=instant)], kind, name, author, reason) %}
{% endmacro %}


{# The same fact about several tables, each with its `instant`: one INSERT a schema, so the tables of a schema get it together. #}
{% macro _add_marks(tables, kind, name=none, author=none, reason=none) %}
    {% set inserts = {} %}
    {% for table in tables %}
        {% set marks = dbt_history._marks(table.relation) or dbt_history._create_marks(table.relation) %}
        {% set is_there = load_relation(table.relation) is not none %}
        {% set newest = dbt_history._history_entries(table.relation, 1) | first if is_there else none %}
        {% set values = [] %}
        {% for value in [kind, table.relation.identifier | lower, name, table.instant] %}
            {% do values.append('cast(null as string)' if value is none else dbt_history._text(value)) %}
        {% endfor %}
        {% do inserts.setdefault(dbt_history._full_name(marks), []).append(
            'select ' ~ values | join(', ') ~ ', ' ~ (newest.version ~ 'L' if newest else 'cast(null as bigint)') ~ ', '
            ~ (dbt_history._text(author) if author else 'current_user()') ~ ', '
            ~ (dbt_history._text(reason) if reason else 'cast(null as string)') ~ ', current_timestamp(), ' ~ dbt_history._text(invocation_id)
        ) %}
    {% endfor %}
    {% for marks, rows in inserts.items() %}
        {% do run_query(
            'insert into ' ~ marks ~ ' (kind, table_name, name, instant, table_version, author, reason, recorded_at, invocation_id) '
            ~ rows | join(' union all ')
        ) %}
    {% endfor %}
{% endmacro %}


{# The instants of a table's tags, and its horizon: {'tags': [{'name', 'instant'}], 'horizon'}. #}
{% macro _marks_of(table) %}
    {% set found = {'tags': [], 'horizon': none} %}
    {% set marks = dbt_history._marks(table.relation) %}
    {% if marks is not none %}
        {% set instant = 'try_cast(instant as ' ~ table.conv.type ~ ')' %}
        {% for row in run_query(
            'select kind, name, ' ~ dbt_history._axis_number('max(' ~ instant ~ ')', table.conv) ~ ' from ' ~ dbt_history._full_name(marks)
            ~ ' where table_name = ' ~ dbt_history._text(table.relation.identifier | lower)
            ~ " and kind in ('tag', 'horizon') group by kind, name order by kind, name"
        ).rows if row[2] is not none %}
            {% if row[0] == 'horizon' %}
                {% do found.update({'horizon': row[2] | int}) %}
            {% else %}
                {% do found.tags.append({'name': row[1], 'number': row[2] | int, 'instant': dbt_history._axis_text(row[2], table.conv)}) %}
            {% endif %}
        {% endfor %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
