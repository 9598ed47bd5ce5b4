{#
    The rows of `model` are the rows of `expected`, with the same multiplicity. NULL equals NULL,
    NaN equals NaN; maps are compared by their entries. A failing row shows whether it is missing or
    unexpected, and how many times.

    Where the types of a column differ, Spark would compare in a common type, which depends on ANSI
    mode and may round. Here a value of `expected` is cast to the model's type, and equals what it
    becomes if a cast back gives the same value. `_not_exact` names the others; they equal nothing.

        expected                 model                    equal
        '7', 7.0, NULL           bigint 7, 7, NULL        yes
        '007', 7.5               bigint 7, 7              no
        1.1 (double)             decimal(10,2) 1.10       yes
        named_struct('b', 1)     struct<a: int>           no, only NULL equals NULL
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
{%- set ours, theirs, not_exact = [], [], [] -%}
{%- for name, type in types.items() -%}
    {%- set column = dbt_history._quote(name) -%}
    {%- set cell = dbt_history._comparable(column, type.model) ~ ' as ' ~ column
        if 'map<' in type.model else column -%}
    {%- do ours.append(cell) -%}
    {%- if dbt_history._is_one_type(type.model, type.expected) -%}
        {%- do theirs.append(cell) -%}
    {%- else -%}
        {%- set exact = dbt_history._exact_cast(column, type) -%}
        {%- do theirs.append(exact.value ~ ' as ' ~ column) -%}
        {%- do not_exact.append(
            'if(' ~ exact.is_exact ~ ', null, concat('
                ~ dbt_history._string_literal(name ~ ' = ') ~ ', cast(' ~ column ~ ' as string), '
                ~ dbt_history._string_literal(' (' ~ type.expected ~ ')') ~ '))'
        ) -%}
    {%- endif -%}
{%- endfor -%}
{%- if not_exact -%}
    {%- do names.append('_not_exact') -%}
    {%- do ours.append("'' as _not_exact") -%}
    {%- do theirs.append(
        "concat_ws('; ', " ~ not_exact | join(', ') ~ ') as _not_exact'
    ) -%}
{%- endif -%}
with

model_rows as (

    select * from {{ model }}

),

expected_rows as (

    select * from {{ expected }}

),

differences as (

    select
        {{ ours | join(',\n        ') }},
        1 as _surplus
    from model_rows
    union all
    select
        {{ theirs | join(',\n        ') }},
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
        {% for other, other_type in theirs.items() if other | lower == name | lower %}
            {% do types.update({name: {'model': type, 'expected': other_type}}) %}
        {% endfor %}
    {% endfor %}
    {% do return(types) %}
{% endmacro %}


{# Whether a UNION compares two types exactly, and by the same fields, in either ANSI mode. #}
{% macro _is_one_type(one, other) %}
    {% set forms = [] %}
    {% for type in [one, other] %}
        {% do forms.append(modules.re.sub(
            '\\b(tinyint|smallint|int)\\b(?!:)', 'bigint', dbt_history._type_of_text(type),
        )) %}
    {% endfor %}
    {% do return(forms[0] == forms[1]) %}
{% endmacro %}


{# A type in lower case, with `string` for the types of text with a length. #}
{% macro _type_of_text(type) %}
    {% do return(modules.re.sub('\\b(var)?char\\([0-9]+\\)', 'string', type | trim | lower)) %}
{% endmacro %}


{#
    A value of `expected` in the model's type (`value`), and whether a cast back gives it again
    (`is_exact`); `try_cast` does not depend on ANSI mode. Types that have no values in common:
    only NULL is exact.
#}
{% macro _exact_cast(column, type) %}
    {% set ours = dbt_history._type_of_text(type.model) %}
    {% set theirs = dbt_history._type_of_text(type.expected) %}
    {% set groups = [] %}
    {% for name in [ours, theirs] %}
        {% do groups.append({
            'tinyint': 'number', 'smallint': 'number', 'int': 'number', 'bigint': 'number',
            'float': 'number', 'double': 'number', 'decimal': 'number', 'string': 'text',
            'date': 'time', 'timestamp': 'time', 'timestamp_ntz': 'time', 'boolean': 'boolean',
        }.get(name.split('(')[0])) %}
    {% endfor %}
    {% if none in groups or (groups[0] != groups[1] and 'text' not in groups) %}
        {% do return({'value': 'null', 'is_exact': column ~ ' is null'}) %}
    {% endif %}
    {% set value = 'try_cast(' ~ column ~ ' as ' ~ ours ~ ')' %}
    {% do return({
        'value': value, 'is_exact': 'try_cast(' ~ value ~ ' as ' ~ theirs ~ ') <=> ' ~ column,
    }) %}
{% endmacro %}
