{#
    Predicates that compare a stored period with a point x. Columns are compared bare with an
    expression of x, so that Delta can skip files. A period is [start, until); `until` is the stored
    end + gap, NULL if the end is open; a table without an end column (append-only) has only open
    periods.
#}

{# start <= x: the period has begun at x. #}
{% macro _starts_by(convention, point, strictly=false) %}
    {%- do return(
        dbt_history._quote(convention.start) ~ (' < ' if strictly else ' <= ') ~ point
    ) -%}
{% endmacro %}


{#
    until > x, or until >= x: the period has not ended at x. At a stored open end itself nothing is
    in force, as for programs that compare `end > x` alone.
#}
{% macro _lasts_beyond(convention, point, or_ends_there=false, prefix='') %}
    {%- if not convention.end -%} {%- do return('true') -%} {%- endif -%}
    {%- set end = prefix ~ dbt_history._quote(convention.end) -%}
    {%- do return(
        '(' ~ end ~ (' >= ' if or_ends_there else ' > ')
            ~ dbt_history._shift_by_gap(point, convention) ~ ' or ' ~ end ~ ' is null)'
    ) -%}
{% endmacro %}


{# until <= x, or until < x: the period has ended at x. An open period has not at any x. #}
{% macro _ended_by(convention, point, strictly=false) %}
    {%- if not convention.end -%} {%- do return('false') -%} {%- endif -%}
    {%- set end = dbt_history._quote(convention.end) -%}
    {%- set is_over = end ~ (' < ' if strictly else ' <= ')
        ~ dbt_history._shift_by_gap(point, convention) -%}
    {%- set first_open_end = dbt_history._first_open_end(convention) -%}
    {%- if first_open_end is none -%} {%- do return(is_over) -%} {%- endif -%}
    {%- do return('(' ~ is_over ~ ' and ' ~ end ~ ' < ' ~ first_open_end ~ ')') -%}
{% endmacro %}


{#
    until >= x for a closed period. It has no `or end is null`, because that would select every file
    with an open period.
#}
{% macro _ended_from(convention, point) %}
    {%- if not convention.end -%} {%- do return('false') -%} {%- endif -%}
    {%- do return(
        dbt_history._quote(convention.end) ~ ' >= ' ~ dbt_history._shift_by_gap(point, convention)
    ) -%}
{% endmacro %}


{# start < until: an empty period is never visible. #}
{% macro _is_not_empty(convention, prefix='') %}
    {%- set start = prefix ~ dbt_history._quote(convention.start) -%}
    {%- do return(dbt_history._lasts_beyond(convention, start, prefix=prefix)) -%}
{% endmacro %}


{# A reader's sub-query: the rows that satisfy all `filters`. #}
{% macro _versions_where(reader, filters) %}
    {%- set sql -%}
(
    select * from {{ reader.from }}{{ ' as log_versions' if reader.get('log') }}
    where {{ filters | reject('none') | join('\n        and ') }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
