{# Adds a fact about a table to the marks of its schema; creates the marks table if needed. #}
{% macro _add_mark(table, kind, name=none, instant=none, author=none, reason=none) %}
    {% do dbt_history._add_marks([dict(table, instant=instant)], kind, name, author, reason) %}
{% endmacro %}


{#
    Adds the same fact about several tables, each with its `instant`, with one INSERT per schema:
    the tables of a schema get it in one commit.
#}
{% macro _add_marks(tables, kind, name, author, reason) %}
    {% set inserts = {} %}
    {% for table in tables %}
        {% set marks = dbt_history._marks(table.relation)
            or dbt_history._create_marks(table.relation) %}
        {% set is_there = load_relation(table.relation) is not none %}
        {% set newest = dbt_history._history_entries(table.relation, 1) | first if is_there
            else none %}
        {% set values = [] %}
        {% for value in [kind, table.relation.identifier | lower, name, table.instant] %}
            {% do values.append(
                'cast(null as string)' if value is none else dbt_history._string_literal(value)
            ) %}
        {% endfor %}
        {% do inserts.setdefault(dbt_history._quoted_relation(marks), []).append(
            'select ' ~ values | join(', ') ~ ', '
                ~ (newest.version ~ 'L' if newest else 'cast(null as bigint)') ~ ', '
            ~ (dbt_history._string_literal(author) if author else 'current_user()') ~ ', '
            ~ (dbt_history._string_literal(reason) if reason else 'cast(null as string)')
                ~ ', current_timestamp(), ' ~ dbt_history._string_literal(invocation_id)
        ) %}
    {% endfor %}
    {% for marks, rows in inserts.items() %}
        {% do run_query(
            'insert into ' ~ marks
                ~ ' (kind, table_name, name, instant, table_version, author, reason, recorded_at,'
                ~ ' invocation_id) '
            ~ rows | join(' union all ')
        ) %}
    {% endfor %}
{% endmacro %}


{#
    A table's tags and retention horizon: {'tags': [{'name', 'number', 'instant'}],
    'retention_horizon'}. A tag that is being moved has both points, the later one first; each is
    protected until it is removed.
#}
{% macro _marks_of(table) %}
    {% set found = {'tags': [], 'retention_horizon': none} %}
    {% set marks = dbt_history._marks(table.relation) %}
    {% if marks is not none %}
        {% set instant = 'try_cast(instant as ' ~ table.convention.type ~ ')' %}
        {% for row in run_query(
            'select kind, name, '
                ~ dbt_history._axis_number('max(' ~ instant ~ ')', table.convention)
                ~ ' as number from ' ~ dbt_history._quoted_relation(marks)
            ~ ' where table_name = '
                ~ dbt_history._string_literal(table.relation.identifier | lower)
            ~ " and kind in ('tag', 'horizon')"
            ~ " group by kind, name, if(kind = 'tag', " ~ instant ~ ', null)'
            ~ ' order by kind, name, number desc'
        ).rows if row[2] is not none %}
            {% if row[0] == 'horizon' %}
                {% do found.update({'retention_horizon': row[2] | int}) %}
            {% else %}
                {% do found.tags.append({
                    'name': row[1], 'number': row[2] | int,
                    'instant': dbt_history._axis_text(row[2], table.convention),
                }) %}
            {% endif %}
        {% endfor %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{#
    The marks of a schema: one small table per schema, with one row per fact that the history rows
    themselves do not hold.

        kind      instant                                     name
        horizon   versions that ended by then were removed    -
        tag       the instant that the tag names              the tag
        space_on, space_suspended, space_off
                  the transaction after which the fact holds  the space
        ...       other maintenance                           ...

    A reader queries it inside its own SQL, so a view created before a cleaning fails after it. Rows
    are only inserted, or deleted when a tag is dropped, so concurrent operations do not conflict;
    the greatest horizon applies.
#}
{% macro _marks_name(relation) %}
    {% do return(
        (relation.schema ~ '.' if relation is not string and relation.schema else '')
            ~ 'history_marks'
    ) %}
{% endmacro %}


{#
    The marks table of the relation's schema, if dbt's relation cache has it: compiling runs no
    query. A view is used after its compilation, so a run that creates one also creates a missing
    marks table, in schemas that this project writes.
#}
{% macro _marks(relation) %}
    {% if not execute or relation is none or relation is string or not relation.schema
        or relation.is_cte %}
        {% do return(none) %}
    {% endif %}
    {% set found = adapter.get_relation(
        database=relation.database, schema=relation.schema, identifier='history_marks',
    ) %}
    {% if found is none and dbt_history._is_lasting_query()
        and relation.schema in dbt_history._written_schemas() %}
        {% set found = dbt_history._create_marks(relation) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# Whether the SQL that is being compiled will be stored as a query. #}
{% macro _is_lasting_query() %}
    {% set config = (model.get('config') if model is defined and model is mapping else none)
        or {} %}
    {% do return(
        flags.WHICH in ['run', 'build'] and config.get('materialized') in ['view', 'ephemeral']
    ) %}
{% endmacro %}


{% macro _written_schemas() %}
    {% set schemas = [] %}
    {% for node in graph.nodes.values() if node.resource_type in ['model', 'seed', 'snapshot'] %}
        {% do schemas.append(node.schema) %}
    {% endfor %}
    {% do return(schemas | unique | list) %}
{% endmacro %}


{% macro _create_marks(relation) %}
    {% set marks = dbt_history._target(
        api.Relation.create(
            database=relation.database, schema=relation.schema, identifier='history_marks',
        ),
        dbt_history._with_format(load_relation(relation))
    ) %}
    {% set create %}
        create table if not exists {{ dbt_history._quoted_relation(marks) }} (
            kind string not null comment 'What the fact says, such as horizon, tag or suspension',
            table_name string not null comment 'The history table, lower case, without its schema',
            name string comment 'Name of the tag or the space; else NULL',
            instant string comment 'A point on the axis of the table: UTC time, day or number',
            table_version bigint comment 'Version of the Delta table before the operation',
            author string,
            reason string,
            recorded_at timestamp not null,
            invocation_id string
        )
        using {{ dbt_history._format(marks) }}
        comment 'One row per fact about history tables that their rows do not hold (dbt_history)'
    {% endset %}
    {% do dbt_history._create_own_table(marks, create) %}
    {% do return(marks) %}
{% endmacro %}


{#
    Whether data of a log may have been erased: by its commits, and, where those have expired, by
    any erasure in the marks of its schema, which name the table of the call only.
#}
{% macro _may_be_erased(relation) %}
    {% for entry in dbt_history._history_entries(relation)
        if dbt_history._recorded_operation(entry) == 'erase_subject' %}
        {% do return(true) %}
    {% endfor %}
    {% set marks = dbt_history._marks(relation) %}
    {% do return(
        marks is not none and dbt_history._count_rows(marks, "kind = 'erasure'") > 0
    ) %}
{% endmacro %}
