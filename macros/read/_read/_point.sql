{#
    `at` of a reader as SQL: a literal or expression (`_instant`), 'now', or a tag: 'tag:<name>' or
    {'tag': name}. On an axis of numbers `now` has no value: the result is none, and the reader
    returns the open versions.
#}
{% macro _point(at, reader, caller_name) %}
    {% set tag = dbt_history._tag_of(at) %}
    {% if tag is not none %}
        {% do return(dbt_history._tagged_instant(tag, reader, caller_name)) %}
    {% elif at is string and at | trim | lower == 'now' %}
        {% do return({
            'timestamp': 'current_timestamp()',
            'date': dbt_history._utc_day('current_timestamp()'),
        }.get(reader.convention.type)) %}
    {% endif %}
    {% do return(dbt_history._instant(at, reader.convention, caller_name)) %}
{% endmacro %}


{# The tag named by `at`, or none. #}
{% macro _tag_of(at) %}
    {% if at is mapping %}
        {% do return(at.get('tag')) %}
    {% elif at is string and at.startswith('tag:') %}
        {% do return(at[4:] | trim) %}
    {% endif %}
    {% do return(none) %}
{% endmacro %}


{#
    A tag is looked up when the query runs, so views follow a tag that is moved and fail if it is
    dropped.
#}
{% macro _tagged_instant(tag, reader, caller_name) %}
    {% set missing = dbt_history._message(
        caller_name, 'there is no tag of this name for the table ' ~ reader.table, got=tag,
        way_out='dbt run-operation create_tag; existing tags are in '
            ~ dbt_history._marks_name(reader.table),
    ) %}
    {% set marks = dbt_history._marks(reader.table) %}
    {% if marks is none %}
        {% if execute %}
            {% do exceptions.raise_compiler_error(missing) %}
        {% endif %}
        {% do return('cast(null as ' ~ reader.convention.type ~ ')') %}
    {% endif %}
    {%- set sql -%}
(
        select
            if(
                count(*) = 0,
                raise_error({{ dbt_history._text_on_one_line(missing) }}),
                max(try_cast(instant as {{ reader.convention.type }}))
            )
        from {{ dbt_history._quoted_relation(marks) }}
        where kind = 'tag' and name = {{ dbt_history._string_literal(tag) }}
            and table_name = {{ dbt_history._string_literal(reader.table.identifier | lower) }}
    )
    {%- endset -%}
    {% do return(sql) %}
{% endmacro %}


{#
    The point `at` of an operation as text of the axis, evaluated now: a literal, an expression,
    `now` or a tag. None means the current version; of an empty table it is none. An expression
    that is NULL is refused: none has other meanings. `argument` is its name in the operation.
#}
{% macro _evaluated_point(at, table, caller_name, argument='at') %}
    {% set reader = {'convention': table.convention, 'table': table.relation} %}
    {% set said = dbt_history._point(at, reader, caller_name) if at is not none else none %}
    {% set point = said if said is not none
        else dbt_history.current_version(table.relation, table.convention) %}
    {% set number = run_query(
        'select ' ~ dbt_history._axis_number(point, table.convention)
    ).rows[0][0] %}
    {% if said is not none and number is none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, argument ~ ' is NULL; nothing was done', got=at,
            expected='a ' ~ table.convention.type ~ ' (literal, or an SQL expression)',
        )) %}
    {% endif %}
    {% do return(dbt_history._axis_text(number, table.convention)) %}
{% endmacro %}
