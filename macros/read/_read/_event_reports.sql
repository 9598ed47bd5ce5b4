{# The key that pairs rows: the argument, else the one recorded by the event table's model. #}
{% macro _event_key(table, key) %}
    {% set named = dbt_history._key_columns(key) %}
    {% if not named and not table.is_view %}
        {% set named = (
            (dbt_history._commit_log(table, '').about or {}).get('events') or {}
        ).get('key', []) %}
    {% endif %}
    {% if not named %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'column_changes', 'the key of the event table is not known', got=table,
            expected='a table of event_rows, or the argument key',
        )) %}
    {% endif %}
    {% do return(named) %}
{% endmacro %}


{% macro _row_struct(columns) %}
    {%- set cells = [] -%}
    {%- for column in columns -%}
        {%- do cells.append(
            dbt_history._quote(column.name) ~ ' as ' ~ dbt_history._prefixed(column.name)
        ) -%}
    {%- endfor -%}
    {%- do return('struct(' ~ (cells | join(', ') or '1') ~ ')') -%}
{% endmacro %}


{# SQL: a column of a pair of images as a struct, NULL if it did not change; times are UTC. #}
{% macro _changed_cell(column) %}
    {%- set old = 'any_value(`__old`, true).' ~ dbt_history._prefixed(column.name) -%}
    {%- set new = 'any_value(`__new`, true).' ~ dbt_history._prefixed(column.name) -%}
    {%- do return(
        'if(' ~ dbt_history._comparable(old, column.type) ~ ' <=> '
            ~ dbt_history._comparable(new, column.type) ~ ", null, named_struct('column', "
        ~ dbt_history._string_literal(column.name) ~ ", 'from', cast("
            ~ dbt_history._in_utc(old, column.type) ~ " as string), 'to', cast("
        ~ dbt_history._in_utc(new, column.type) ~ ' as string)))'
    ) -%}
{% endmacro %}


{# SQL: the time is in [from_day, to_day + 1 day); none means unbounded. #}
{% macro _within_days(from_day, to_day) %}
    {%- set terms = ['1 = 1'] -%}
    {%- if from_day is not none -%}
        {%- do terms.append(
            "`_hist_time` >= timestamp'" ~ (from_day | string)[:10] ~ " 00:00:00 UTC'"
        ) -%}
    {%- endif -%}
    {%- if to_day is not none -%}
        {%- do terms.append(
            '`_hist_time` < ' ~ dbt_history._shift_by_gap(
                "timestamp'" ~ (to_day | string)[:10] ~ " 00:00:00 UTC'",
                {'type': 'timestamp', 'gap': '1 day'}, '+',
            )
        ) -%}
    {%- endif -%}
    {%- do return(terms | join(' and ')) -%}
{% endmacro %}
