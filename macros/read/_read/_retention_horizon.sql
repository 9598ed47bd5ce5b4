{#
    True, or an error that names the table and the retention horizon if `point` is before it,
    because versions are missing there. `point` none: the reader needs the whole history.
    `strictly`: the ends at the horizon itself are needed too. `or_at_tag`: the instant of a tag is
    allowed, because cleaning keeps its versions. None if the table cannot have been cleaned.
#}
{% macro _not_below_retention_horizon(
    reader, point, caller_name, strictly=false, or_at_tag=false, way_out=none
) %}
    {#- A log is never cleaned. -#}
    {%- set marks = none if reader.get('log') else dbt_history._marks(reader.table) -%}
    {%- if marks is none -%} {%- do return(none) -%} {%- endif -%}
    {%- set instant = 'try_cast(instant as ' ~ reader.convention.type ~ ')' -%}
    {%- set retention_horizon = "max(if(kind = 'horizon', " ~ instant ~ ', null))' -%}
    {%- set shown = "'the whole past'" if point is none
        else 'cast(' ~ dbt_history._in_utc('cast(' ~ point ~ ' as timestamp)')
            ~ " as string) || ' UTC'" if reader.convention.type == 'timestamp'
        else 'cast(' ~ point ~ ' as string)' -%}
    {%- set message = dbt_history._message(
        caller_name, 'the history of ' ~ reader.table ~ ' was cleaned, so this would not be exact',
        got='%1$s',
        expected='a point ' ~ ('after' if strictly else 'at or after') ~ ' the horizon, %2$s'
            ~ (', or a tag' if or_at_tag else ''),
        way_out=way_out,
    ) -%}
    {%- set sql -%}
(
            select
                if(
                    {{ retention_horizon }} {{ 'is not null' if point is none
                        else ('>= ' if strictly else '> ') ~ point }}
                    {%- if or_at_tag %}
                    and not coalesce(bool_or(kind = 'tag' and {{ instant }} = {{ point }}), false)
                    {%- endif %},
                    raise_error(format_string(
                        {{ dbt_history._text_on_one_line(message) }},
                        {{ shown }},
                        max_by(instant, if(kind = 'horizon', {{ instant }}, null))
                    )),
                    true
                )
            from {{ dbt_history._quoted_relation(marks) }}
            where table_name = {{ dbt_history._string_literal(reader.table.identifier | lower) }}
                and kind in ('horizon', 'tag')
        )
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The retention horizons of readers' tables as SQL: one value per schema with marks, the greatest
    of its tables, NULL if none of them was cleaned.
#}
{% macro _retention_horizons(readers) %}
    {%- set names = {} -%}
    {%- for reader in readers if not reader.get('log') -%}
        {%- set marks = dbt_history._marks(reader.table) -%}
        {%- if marks is not none -%}
            {%- do names.setdefault(dbt_history._quoted_relation(marks), []).append(
                dbt_history._string_literal(reader.table.identifier | lower)
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set horizons = [] -%}
    {%- for marks, tables in names.items() -%}
        {%- do horizons.append(
            '(select max(try_cast(instant as ' ~ readers[0].convention.type ~ ')) from ' ~ marks
                ~ " where kind = 'horizon' and table_name in ("
            ~ tables | unique | join(', ') ~ '))'
        ) -%}
    {%- endfor -%}
    {%- do return(horizons) -%}
{% endmacro %}


{# A text literal without line breaks, so that indenting the SQL does not change the text. #}
{% macro _text_on_one_line(value) %}
    {%- do return(dbt_history._string_literal(value).replace('\n', '\\n')) -%}
{% endmacro %}
