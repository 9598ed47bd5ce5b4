{#
    The staged rows as rows of the table: one row per staged row, with every column of the table,
    prefixed and in its type, and the columns by which the rules order the rows.

        kind       what the row is (`_row_kinds`); NULL for an unknown stage
        at         the row's point on the time axis: its start, or the end of a delete row. An event
                   (`settings.has_events`) with a start of its end + gap deletes a version that
                   starts there, too; of other delete rows only the end counts:

                        at    9.999  10.000       delete with start 10.000 and end 9.999
                        version      [ a ------   ends before it begins
        position   _order, NULL if the SELECT has none
        unmodified lower-case names of the columns that keep their value; for an update row also
                   those that the SELECT lacks
#}
{% macro _batch_rows(staged, columns, settings, filter=none) %}
    {%- set convention = settings.convention -%}
    {%- set names = staged.names -%}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set start = dbt_history._staged_column(
        staged, {'name': convention.start, 'type': convention.type},
    ) -%}
    {%- set end = dbt_history._staged_column(
        staged, {'name': convention.end, 'type': convention.type},
    ) -%}
    {%- set missing = [] -%}
    {%- for name in dbt_history._columns_not_selected(staged, columns) -%}
        {%- do missing.append(dbt_history._string_literal(name | lower)) -%}
    {%- endfor -%}
    select
        {{ '`_batch`' if '_batch' in names else 'cast(null as bigint)' }} as batch,
        case `_stage`
            when 'upsert' then {{ kinds.upsert_row }}
            when 'replace' then {{ kinds.upsert_row }}
            when 'update' then {{ kinds.update_row }}
            when 'delete' then {{ kinds.delete_row }}
            when 'earliest_start' then {{ kinds.earliest_start }}
        end as kind,
        if(
            `_stage` = 'delete'
                {%- if convention.gap and settings.has_events %}
                and not coalesce({{ start }} = {{ dbt_history._shift_by_gap(
                    end, convention, '+',
                ) }}, false)
                {%- endif %},
            {{ end }},
            {{ start }}
        ) as at,
        {{ 'cast(`_order` as bigint)' if '_order' in names else 'cast(null as bigint)' }}
            as position,
        {{ dbt_history._unmodified_names(staged, missing) }} as unmodified,
        `__evaluated_at` as evaluated_at
        {%- for column in columns %},
        {{ dbt_history._staged_column(staged, column) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from {{ staged.relation }}
    {%- if filter %}
    where {{ filter }}
    {%- endif %}
{%- endmacro %}


{# The names of the table's columns that the SELECT lacks. #}
{% macro _columns_not_selected(staged, columns) %}
    {% set names = [] %}
    {% for column in columns if column.name | lower not in staged.names %}
        {% do names.append(column.name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    A staged column in the type of the table; NULL if the SELECT has no such column. In a version
    that the table has, such a column keeps its value (`_kept_columns_cte`).
#}
{% macro _staged_column(staged, column) %}
    {%- set name = staged.names.get(column.name | lower) -%}
    {%- if name is none or {'name': name, 'type': 'void'} in staged.columns -%}
        {%- do return('cast(null as ' ~ dbt_history._ddl_type(column.type) ~ ')') -%}
    {%- endif -%}
    {#- Its cells, if it has any, are NULL. -#}
    {%- if {'name': name, 'type': 'array<void>'} in staged.columns -%}
        {%- do return(
            'transform(' ~ dbt_history._quote(name) ~ ', cell -> cast(null as '
                ~ dbt_history._ddl_type(column.type[6:-1]) ~ '))'
        ) -%}
    {%- endif -%}
    {%- set is_same = {'name': name, 'type': column.type} in staged.columns -%}
    {%- do return(
        dbt_history._quote(name) if is_same
            else 'cast(' ~ dbt_history._quote(name) ~ ' as ' ~ dbt_history._ddl_type(column.type)
                ~ ')'
    ) -%}
{% endmacro %}


{% macro _unmodified_names(staged, missing) %}
    {%- set said = "coalesce(transform(cast(`_unmodified` as array<string>), name -> lower(name)),"
        ~ " cast(array() as array<string>))"
        if '_unmodified' in staged.names
            and {'name': staged.names._unmodified, 'type': 'void'} not in staged.columns
        else 'cast(array() as array<string>)' -%}
    {%- do return(
        'if(`_stage` = \'update\', array_union(' ~ said ~ ', array(' ~ missing | join(', ') ~ ')), '
            ~ said ~ ')'
            if missing else said
    ) -%}
{% endmacro %}


{#
    The kinds of rows on the time axis of the rules. The numbers give the order at one instant: a
    stored version, then upserts, then updates; separate conditions order deletes, earliest starts
    and the last three kinds, which are ends (`_late_events.sql`).
#}
{% macro _row_kinds() %}
    {% do return({
        'stored': 0, 'upsert_row': 1, 'update_row': 2, 'delete_row': 3, 'earliest_start': 4,
        'tombstone': 5, 'known_end': 6, 'deletion': 7,
    }) %}
{% endmacro %}
