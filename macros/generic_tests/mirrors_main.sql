{#
    For each key, the newest row of the mirror, unless it is a deletion, equals the row of the main
    table in all columns; NULL equals NULL. Fields of structs are compared by name: the mirror keeps
    those that the main table has no more, and may have them in another order.
#}
{% test mirrors_main(model, main, key=none, id=none) %}
{%- set columns = [] -%}
{%- set mirror = dbt_history._renames_of(
    dbt_history._tested_table(model), 'mirrors_main',
) -%}
{%- set own_id = id or mirror.id or main.identifier ~ '_hx_id' -%}
{%- do mirror.update({'id': own_id}) -%}
{%- if execute -%}
    {%- if model is string -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'mirrors_main', 'the test is of a whole table: where would choose rows of the mirror'
                ~ ' only, and not of its main table',
            got=model, expected='a test without where',
            way_out="remove where from the test, or set it to '' if the project sets it for all"
                ~ ' tests',
        )) -%}
    {%- endif -%}
    {%- if dbt_history._is_missing(main) and flags.WHICH in ['test', 'build'] -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'mirrors_main', 'the main table does not exist', got=main,
            expected='the table that ' ~ model ~ ' mirrors',
        )) -%}
    {%- endif -%}
    {%- for column in dbt_history._table_columns(main)
        if column.name | lower not in ['mod_time', 'mod_user'] -%}
        {%- do columns.append(column) -%}
    {%- endfor -%}
{%- endif -%}
{%- set keys = dbt_history._quoted(dbt_history._key_of(main, key, 'mirrors_main')) | join(', ') -%}
{%- set cells = [] -%}
{%- for column in columns -%}
    {%- do cells.append(
        dbt_history._quote(column.name) ~ ' as ' ~ dbt_history._prefixed(column.name)
    ) -%}
{%- endfor -%}
{%- set nested = [] -%}
{%- for column in columns if '<' in column.type -%}
    {%- do nested.append(
        dbt_history._renamed_cell(mirror, column.name) ~ ' as ' ~ dbt_history._quote(column.name)
    ) -%}
{%- endfor -%}
{%- set types = dbt_history._types_of_query('select ' ~ nested | join(', ') ~ ' from ' ~ model)
    if nested and not dbt_history._is_missing(model) else {} -%}
{%- set stored = [] -%}
{%- for column in columns -%}
    {%- set type = types.get(column.name, column.type) -%}
    {%- do stored.append(
        dbt_history._converted(
            dbt_history._renamed_cell(mirror, column.name), type,
            dbt_history._with_fields_of(type, column.type),
        ) ~ ' as ' ~ dbt_history._prefixed(column.name)
    ) -%}
{%- endfor -%}
with newest as (

    select
        *,
        row_number() over (
            partition by {{ keys }} order by {{ dbt_history._quote(own_id) }} desc
        ) as `__place`
    from {{ model }}

),

both as (

    select
        {{ keys }},
        true as `__is_main`,
        struct({{ cells | join(', ') or '1' }}) as `__row`
    from {{ main }}

    union all

    select
        {{ keys }},
        false as `__is_main`,
        struct({{ stored | join(', ') or '1' }}) as `__row`
    from newest
    where `__place` = 1 and not `deleted`

),

compared as (

    select
        {{ keys }},
        count_if(`__is_main`) as rows_in_main,
        count_if(not `__is_main`) as rows_in_mirror,
        first(if(`__is_main`, `__row`, null), true) as `__main_row`,
        first(if(`__is_main`, null, `__row`), true) as `__mirror_row`
    from both
    group by {{ keys }}

)

select
    {{ keys }},
    rows_in_main,
    rows_in_mirror,
    to_json(`__main_row`) as main_row,
    to_json(`__mirror_row`) as mirror_row
from compared
where not (
    rows_in_main = 1 and rows_in_mirror = 1
        and {{ dbt_history._rows_are_equal(columns, '`__main_row`.', '`__mirror_row`.') }}
)
{% endtest %}
