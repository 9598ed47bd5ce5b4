{#
    Predicates of a stored period against a point x, each column bare against what the point gives, so that Delta skips files by
    them. A period is [start, until); `until` is the stored end + gap, nothing where the end is open; a table without an end
    column (append-only) has open periods alone.
#}

{# start <= x: x is not before the period. #}
{% macro _starts_by(conv, point, strictly=false) %}
    {%- do return(dbt_history._quote(conv.start) ~ (' < ' if strictly else ' <= ') ~ point) -%}
{% endmacro %}


{# until > x, or until >= x: the period is not over. #}
{% macro _lasts_beyond(conv, point, or_ends_there=false) %}
    {%- if not conv.end -%} {%- do return('true') -%} {%- endif -%}
    {%- set end = dbt_history._quote(conv.end) -%}
    {%- do return(
        '(' ~ end ~ (' >= ' if or_ends_there else ' > ') ~ dbt_history._shift_by_gap(point, conv) ~ ' or ' ~ end ~ ' is null)'
    ) -%}
{% endmacro %}


{# until <= x, or until < x: the period is over. An open end is never over, whatever x. #}
{% macro _ended_by(conv, point, strictly=false) %}
    {%- if not conv.end -%} {%- do return('false') -%} {%- endif -%}
    {%- set end = dbt_history._quote(conv.end) -%}
    {%- set is_over = end ~ (' < ' if strictly else ' <= ') ~ dbt_history._shift_by_gap(point, conv) -%}
    {%- if conv.open_end is none -%} {%- do return(is_over) -%} {%- endif -%}
    {%- do return('(' ~ is_over ~ ' and ' ~ end ~ ' < ' ~ dbt_history._open_end(conv) ~ ')') -%}
{% endmacro %}


{# until >= x, of a period that is over; without `or end is null`, which would let every file with an open period through. #}
{% macro _ended_from(conv, point) %}
    {%- if not conv.end -%} {%- do return('false') -%} {%- endif -%}
    {%- do return(dbt_history._quote(conv.end) ~ ' >= ' ~ dbt_history._shift_by_gap(point, conv)) -%}
{% endmacro %}


{# start < until: what begins and ends at one point is never seen. #}
{% macro _is_not_empty(conv) %}
    {%- do return(dbt_history._lasts_beyond(conv, dbt_history._quote(conv.start))) -%}
{% endmacro %}


{# The first point outside the period, NULL where it is open; told by the end alone. #}
{% macro _end_of_period(conv, prefix='') %}
    {%- if not conv.end -%} {%- do return('cast(null as ' ~ conv.type ~ ')') -%} {%- endif -%}
    {%- set end = prefix ~ dbt_history._quote(conv.end) -%}
    {%- set until = dbt_history._shift_by_gap(end, conv, '+') -%}
    {%- if conv.open_end is none -%} {%- do return(until) -%} {%- endif -%}
    {%- do return('if(' ~ end ~ ' < ' ~ dbt_history._open_end(conv) ~ ', ' ~ until ~ ', null)') -%}
{% endmacro %}


{# A reader's sub-query: the rows that pass all of `filters`. #}
{% macro _versions_where(reader, filters) %}
    {%- set sql -%}
(
    select * from {{ reader.from }}{{ ' as log_versions' if reader.get('log') }}
    where {{ filters | reject('none') | join('\n        and ') }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
