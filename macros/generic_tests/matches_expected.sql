{#
    The rows of `model` are the rows of `expected`, with the same multiplicity. NULL equals NULL,
    NaN equals NaN; maps are compared by their entries. A failing row shows whether it is missing or
    unexpected, and how many times.
#}
{% test matches_expected(model, expected, columns=none) %}
{%- for side in [model, expected]
    if execute and '__dbt__cte__' in side | string and flags.WHICH in ['test', 'build'] -%}
    {%- do exceptions.raise_compiler_error(dbt_history._message(
        'matches_expected', 'an ephemeral model has no table whose columns are known', got=side,
        expected='a table, a view, a seed or a sub-query in parentheses on each side',
        way_out='make the model a view, or write its rows as a seed or a sub-query',
    )) -%}
{%- endfor -%}
{%- if not execute or dbt_history._is_missing(model) or dbt_history._is_missing(expected) -%}
{#-
    If the SQL is compiled before the tables are built (`dbt compile`, `dbt docs generate`), the
    columns are not known yet.
-#}
{{ dbt_history._difference_of_all_columns(model, expected) }}
{%- else -%}
{%- set types = dbt_history._comparable_columns(model, expected, columns) -%}
{%- set names = dbt_history._quoted(types.keys()) -%}
{%- set comparable = [] -%}
{%- for name, type in types.items() -%}
    {%- set column = dbt_history._quote(name) -%}
    {%- do comparable.append(
        dbt_history._comparable(column, type) ~ ' as ' ~ column if 'map<' in type else column
    ) -%}
{%- endfor -%}
with

model_rows as (

    select * from {{ model }}

),

expected_rows as (

    select * from {{ expected }}

),

differences as (

    select
        {{ comparable | join(',\n        ') }},
        1 as _surplus
    from model_rows
    union all
    select
        {{ comparable | join(',\n        ') }},
        -1 as _surplus
    from expected_rows

),

counted as (

    select
        {{ names | join(',\n        ') }},
        sum(_surplus) as _surplus
    from differences
    group by {{ names | join(', ') }}

)

select
    case when _surplus > 0 then 'unexpected' else 'missing' end as _difference,
    abs(_surplus) as _times,
    {{ names | join(',\n    ') }}
from counted
where not (_surplus = 0)
{%- endif -%}
{% endtest %}


{#
    A sub-query cannot be looked up; it counts as existing. Nor can an ephemeral model, whose
    columns are not known.
#}
{% macro _is_missing(relation) %}
    {% do return(
        relation is not string and (relation.is_cte or load_relation(relation) is none)
    ) %}
{% endmacro %}


{% macro _difference_of_all_columns(model, expected) -%}
select 'unexpected' as _difference, *
from (select * from {{ model }} except all select * from {{ expected }}) as unexpected
union all
select 'missing' as _difference, *
from (select * from {{ expected }} except all select * from {{ model }}) as missing
{%- endmacro %}


{#
    The columns to compare, with their types: those named, else all columns, which must then be the
    same on both sides.
#}
{% macro _comparable_columns(model, expected, columns) %}
    {% set ours = dbt_history._types_of_query('select * from ' ~ model) %}
    {% set theirs = dbt_history._types_of_query('select * from ' ~ expected) %}
    {% set wanted = columns if columns else ours.keys() | list %}
    {% set not_ours = [] %}
    {% set not_theirs = [] %}
    {% for name in (wanted if columns else wanted + theirs.keys() | list) %}
        {% if name | lower not in ours.keys() | map('lower') %}
            {% do not_ours.append(name) %}
        {% endif %}
        {% if name | lower not in theirs.keys() | map('lower') %}
            {% do not_theirs.append(name) %}
        {% endif %}
    {% endfor %}
    {% if not_ours or not_theirs %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'matches_expected',
            'the two sides do not have the same columns',
            got='not in the model: ' ~ (not_ours | join(', ') or 'none') ~ '; not in expected: '
                ~ (not_theirs | join(', ') or 'none'),
            expected='the same columns on both sides',
            way_out='name the columns to compare: `columns: [...]`',
        )) %}
    {% endif %}
    {% set types = {} %}
    {% for name, type in ours.items() if name | lower in wanted | map('lower') %}
        {% do types.update({name: type}) %}
    {% endfor %}
    {% do return(types) %}
{% endmacro %}
