{#
    The columns of `source` that some changes do not say (`_partly_said_columns`), by name: SQL,
    whether a change says the column. None of several sources, whose commits have the same numbers.
#}
{% macro _partly_said(source, key) %}
    {% set notes = dbt_history._notes('capture', source) %}
    {% set said = {} %}
    {% for note in notes if notes | map(attribute='source') | unique | list | length == 1 %}
        {% for column in note.get('partly_said', [])
            if column.name | lower not in key | map('lower') | list %}
            {% do said.update({column.name: column.is_said}) %}
        {% endfor %}
    {% endfor %}
    {% do return(said) %}
{% endmacro %}


{#
    `source` with the columns in `used`, names in lower case, under their current names in all rows,
    also in changes from before they were renamed (`_columns_under_former_names`): {'sql', 'moved':
    the names of such columns, current and former}. Not of several sources, whose commits have the
    same numbers.
#}
{% macro _with_current_names(source, used) %}
    {%- set notes = dbt_history._notes('capture', source) -%}
    {%- set renamed, left, cells = {}, {}, {} -%}
    {%- for note in notes if notes | map(attribute='source') | unique | list | length == 1 -%}
        {%- for column in note.get('renamed', []) if column.name | lower in used -%}
            {%- do renamed.update({column.name | lower: column.former}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if not renamed or not execute -%}
        {%- do return({'sql': source, 'moved': []}) -%}
    {%- endif -%}
    {%- for name, former in renamed.items() -%}
        {%- set cases = [] -%}
        {%- for one in former -%}
            {%- do cases.append('when ' ~ one.where ~ ' then ' ~ dbt_history._quote(one.name)) -%}
            {%- do left.update({
                one.name | lower: left.get(one.name | lower, []) + [one.where],
            }) -%}
        {%- endfor -%}
        {%- do cells.update({
            name: 'case ' ~ cases | join(' ') ~ ' else ' ~ dbt_history._quote(name) ~ ' end',
        }) -%}
    {%- endfor -%}
    {%- for name, rows in left.items() if name not in renamed -%}
        {%- do cells.update({
            name: 'if(' ~ rows | join(' or ') ~ ', null, ' ~ dbt_history._quote(name) ~ ')',
        }) -%}
    {%- endfor -%}
    {%- set columns = [] -%}
    {%- for column in dbt_history._query_columns('select * from ' ~ source ~ ' as changes') -%}
        {%- set quoted = dbt_history._quote(column.name) -%}
        {%- set cell = cells.get(column.name | lower) -%}
        {%- do columns.append(quoted if cell is none else cell ~ ' as ' ~ quoted) -%}
    {%- endfor -%}
    {%- do return({
        'sql': '(select ' ~ columns | join(', ') ~ ' from ' ~ source ~ ' as `changes`)',
        'moved': cells.keys() | list,
    }) -%}
{% endmacro %}


{#
    `source` with the cells that a change does not say: from the newest change of this run that says
    them of the same version (key and `at`). `_unmodified` names the others, which keep the table's
    value (`_kept_columns_cte`). `names`: the columns of `source`.

        commit          5               6           7
        at 3, city      Bonn            dropped     not said -> Bonn
        at 4, city      in the table    dropped     not said -> the table's
#}
{% macro _with_cells_said_before(source, names, partly_said, key, at, sequence) %}
{%- set said = {} -%}
{%- for name in partly_said -%}
    {%- do said.update({name: '`__said_' ~ loop.index ~ '`'}) -%}
{%- endfor -%}
(
    select
        {%- for name in names %}
        {% set cell = dbt_history._quote(name) -%}
        {{ said[name] ~ '.`v` as ' ~ cell if name in said else cell }},
        {%- endfor %}
        array_compact(array(
            {%- for name, cell in said.items() %}
            if({{ cell }} is null, {{ dbt_history._string_literal(name | lower) }}, null)
            {{- ',' if not loop.last }}
            {%- endfor %}
        )) as `_unmodified`
    from (
        select
            *,
            {%- for name, is_said in partly_said.items() %}
            last_value(
                if(
                    `_change_type` <> 'delete' and {{ is_said }},
                    named_struct('v', {{ dbt_history._quote(name) }}),
                    null
                ),
                true
            ) over same_version as {{ said[name] }}{{ ',' if not loop.last }}
            {%- endfor %}
        from {{ source }} as `changes`
        window same_version as (
            partition by {{ dbt_history._quoted(key) | join(', ') }}, {{ at }}
            order by {{ (sequence + ['`_commit_version`']) | join(', ') }}
            rows between unbounded preceding and current row
        )
    ) as `changes`
)
{%- endmacro %}
