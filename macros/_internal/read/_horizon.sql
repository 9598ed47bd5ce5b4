{#
    The marks of a schema: one small table beside the history tables, one row a fact that the rows themselves cannot tell.

        kind      instant                                     name
        horizon   up to here versions were removed            -
        tag       the instant that the tag names              the tag
        ...       what else maintenance has done

    A reader asks it inside its SQL, so a view made long before a cleaning refuses after it. Rows are added, and tags deleted again;
    nothing is changed, so two operations at once do not get in each other's way: the horizon is the greatest one.
#}
{% macro _marks_name(relation) %}
    {% do return((relation.schema ~ '.' if relation is not string and relation.schema else '') ~ 'history_marks') %}
{% endmacro %}


{#
    The marks table of the relation's schema as far as dbt's own list of relations knows it: no query while compiling. A view outlives
    its compilation, so the run that makes one also makes the table, if it is not there yet, in the schemas that this project writes.
#}
{% macro _marks(relation) %}
    {% if not execute or relation is none or relation is string or not relation.schema or relation.is_cte %}
        {% do return(none) %}
    {% endif %}
    {% set found = adapter.get_relation(database=relation.database, schema=relation.schema, identifier='history_marks') %}
    {% if found is none and dbt_history._is_lasting_query() and relation.schema in dbt_history._written_schemas() %}
        {% set found = dbt_history._create_marks(relation) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# Whether what is compiled now will be kept as a query. #}
{% macro _is_lasting_query() %}
    {% set config = (model.get('config') if model is defined and model is mapping else none) or {} %}
    {% do return(flags.WHICH in ['run', 'build'] and config.get('materialized') in ['view', 'ephemeral']) %}
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
        api.Relation.create(database=relation.database, schema=relation.schema, identifier='history_marks'),
        dbt_history._with_format(load_relation(relation))
    ) %}
    {% set create %}
        create table if not exists {{ dbt_history._full_name(marks) }} (
            kind string not null comment 'horizon, tag, suspension, resumption, rewind or erasure',
            table_name string not null comment 'The history table, lower case, without its schema',
            name string comment 'Name of the tag; else NULL',
            instant string comment 'A point on the axis of the table: UTC time, day or number, as text',
            table_version bigint comment 'Version of the Delta table before the operation',
            author string,
            reason string,
            recorded_at timestamp not null,
            invocation_id string
        )
        using {{ dbt_history._format(marks) }}
        comment 'One row per fact about the history tables of this schema that their rows cannot tell (dbt_history)'
    {% endset %}
    {% do dbt_history._create_own_table(marks, create, {}) %}
    {% do return(marks) %}
{% endmacro %}


{#
    True, or an error that names table and horizon: below it versions are missing. `point` none: the reader needs all there ever was.
    `strictly`: the ends at the horizon itself are needed too. `or_at_tag`: at the instant of a tag all versions were kept.
    None where nothing can have been cleaned.
#}
{% macro _not_below_horizon(reader, point, macro_name, strictly=false, or_at_tag=false) %}
    {%- set marks = dbt_history._marks(reader.table) -%}
    {%- if marks is none -%} {%- do return(none) -%} {%- endif -%}
    {%- set instant = 'try_cast(instant as ' ~ reader.conv.type ~ ')' -%}
    {%- set horizon = "max(if(kind = 'horizon', " ~ instant ~ ', null))' -%}
    {%- set message = dbt_history._message(
        macro_name, 'the history of ' ~ reader.table ~ ' was cleaned, so this would not be exact', got='%1$s',
        expected='a point ' ~ ('after' if strictly else 'at or after') ~ ' the horizon, %2$s' ~ (', or a tag' if or_at_tag else ''),
    ) -%}
    {%- set sql -%}
(
            select
                if(
                    {{ horizon }} {{ 'is not null' if point is none else ('>= ' if strictly else '> ') ~ point }}
                    {%- if or_at_tag %}
                    and not coalesce(bool_or(kind = 'tag' and {{ instant }} = {{ point }}), false)
                    {%- endif %},
                    raise_error(format_string(
                        {{ dbt_history._text_on_one_line(message) }},
                        {{ "'the whole past'" if point is none else 'cast(' ~ point ~ ' as string)' }},
                        max_by(instant, if(kind = 'horizon', {{ instant }}, null))
                    )),
                    true
                )
            from {{ dbt_history._full_name(marks) }}
            where table_name = {{ dbt_history._text(reader.table.identifier | lower) }} and kind in ('horizon', 'tag')
        )
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# A text literal without a line break in it, so that indenting the SQL does not change the text. #}
{% macro _text_on_one_line(value) %}
    {%- do return(dbt_history._text(value).replace('\n', '\\n')) -%}
{% endmacro %}
