{#
    Who changed which column, from which value to which: one row per changed column, from an event
    table. `from_day` and `to_day` are whole days (UTC), both included; times in `from` and `to` are
    UTC, too. NULL is a value; columns whose name begins with an underscore or contains a slash are
    left out.

        events     1 a=1 b=2           3 a=1 b=2, 4 a=5 b=2      2 a=5 b=2
        report     Created  a -> 1     Modified  a  1 -> 5       Deleted  a 5 ->
                   Created  b -> 2                               Deleted  b 2 ->

    The old and the new row of one transaction, time and key belong together. Where the events of
    two statements may have one time, a column `_hist_statement` tells the statements apart.
#}
{% macro column_changes(
    events, from_day=none, to_day=none, key=none, show=['Created', 'Modified', 'Deleted']
) %}
    {%- set show = [show] if show is string else show -%}
    {%- set unknown = show | reject('in', ['Created', 'Modified', 'Deleted']) | list -%}
    {%- if unknown -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'column_changes', 'there is no such kind of change', got=unknown | join(', '),
            expected='Created, Modified or Deleted', node=dbt_history._node_of_context(),
        )) -%}
    {%- endif -%}
    {%- set table = dbt_history._loaded(events, 'column_changes') if execute else none -%}
    {%- if table is none -%}
        {%- do return('(select * from ' ~ events ~ ')') -%}
    {%- endif -%}
    {%- set key = dbt_history._event_key(table, key) -%}
    {%- set columns = [] -%}
    {%- set keys = dbt_history._quoted(key) | join(', ') -%}
    {%- set pair = ['`_hist_trans_id`', '`_hist_time`', keys] -%}
    {%- for column in dbt_history._table_columns(events) -%}
        {%- if column.name | lower == '_hist_statement' -%}
            {%- do pair.append('`_hist_statement`') -%}
        {%- elif not column.name.startswith('_') and '/' not in column.name -%}
            {%- do columns.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set sql -%}
(
    select
        `_hist_trans_id`, `_hist_user`, `_hist_time`, {{ keys }}, `change`, `cell`.`column`,
        `cell`.`from`, `cell`.`to`
    from (
        select
            `_hist_trans_id`,
            max(`_hist_user`) as `_hist_user`,
            `_hist_time`,
            {{ keys }},
            case
                when count(`__old`) = 0 then 'Created'
                when count(`__new`) = 0 then 'Deleted'
                else 'Modified'
            end as `change`,
            explode(filter(
                {%- if columns %}array(
                {%- for column in columns %}
                {{ dbt_history._changed_cell(column) }}{{ ',' if not loop.last }}
                {%- endfor %}
            )
                {%- else -%}
                cast(array() as array<struct<`column`: string, `from`: string, `to`: string>>)
                {%- endif %}, cell -> cell is not null)) as `cell`
        from (
            select
                `_hist_user`, {{ pair | join(', ') }},
                if(
                    cast(`_hist_event` as string) in ('2', '3', 'D', 'F'),
                    {{ dbt_history._row_struct(columns) }},
                    null
                ) as `__old`,
                if(
                    cast(`_hist_event` as string) in ('1', '4', 'I', 'T'),
                    {{ dbt_history._row_struct(columns) }},
                    null
                ) as `__new`
            from {{ events }}
            where {{ dbt_history._within_days(from_day, to_day) }}
        ) as images
        group by {{ pair | join(', ') }}
    ) as cells
    {%- if show %}
    where `change` in (
        {%- for kind in show %}
        {{ dbt_history._string_literal(kind) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    {%- else %}
    where false
    {%- endif %}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
