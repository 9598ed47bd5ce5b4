{# Conditions over the rows of one pass over a batch, whose columns are prefixed. #}


{#
    A batch affects only versions that end at or after its earliest time minus a gap. The bound is a
    literal, so that Delta can skip files by it.
#}
{% macro _target_prune_predicate(convention, plan, alias) %}
    {%- set end = alias ~ '.' ~ dbt_history._quote(convention.end) -%}
    {%- do return(
        '(' ~ end ~ ' >= ' ~ dbt_history._literal(plan.bound, convention) ~ ' or ' ~ end
            ~ ' is null)'
    ) -%}
{% endmacro %}


{#
    FROM and WHERE of the stored versions that a plan can affect, as `stored`: of the keys in the
    CTE `batch`, those that end at or after the bound. `is_replaced`: of a table that the run will
    replace, none. Fails if the table has a new column.
#}
{% macro _from_affected_versions(batch) -%}
from {{ dbt_history._columns_without_rows(batch.columns) if batch.get('is_replaced')
    else dbt_history._quoted_relation(batch.get('place') or batch.target) }} as stored
left semi join batch
    on {% for name in batch.settings.key -%}
    stored.{{ dbt_history._quote(name) }} = batch.{{ dbt_history._prefixed(name) }}
    {{- '\n    and ' if not loop.last }}{% endfor %}
where {{ dbt_history._target_prune_predicate(batch.settings.convention, batch.plan, 'stored') }}
    {%- if not batch.get('is_replaced') %}
    and {{ dbt_history._has_no_new_column(
        'stored', batch.columns | map(attribute='name') | list, 'the model',
    ) | indent(4) }}
    {%- endif %}
{%- endmacro %}


{#
    A condition that fails if the table has a column that it did not have when `names` was read: a
    row that takes over the values of a version would not take over that one. The types alone
    decide, so the condition is gone before Spark reads a row.

        run      columns: price                            merge
        other                     column vat, 7
        table    [ 5 ------------)[ 5, vat 7 ----------------)[ 6, vat NULL --      without it
#}
{% macro _has_no_new_column(alias, names, run) -%}
if(
    typeof(struct({{ alias }}.* except (
        {{- dbt_history._quoted(names) | join(', ') -}}
    ))) = 'struct<>',
    true,
    raise_error('dbt_history: the table has a new column; run {{ run }} again')
)
{%- endmacro %}


{# A sub-query without rows, with these columns. #}
{% macro _columns_without_rows(columns) %}
    {%- set cells = [] -%}
    {%- for column in columns -%}
        {%- do cells.append(
            'cast(null as ' ~ dbt_history._ddl_type(column.type) ~ ') as '
                ~ dbt_history._quote(column.name)
        ) -%}
    {%- endfor -%}
    {%- do return('(select ' ~ cells | join(', ') ~ ' where false)') -%}
{% endmacro %}


{# Whether a version is open, over prefixed columns. #}
{% macro _is_open_prefixed(convention) %}
    {%- set end = dbt_history._prefixed(convention.end) -%}
    {%- if convention.active -%}
        {%- do return('coalesce(' ~ dbt_history._prefixed(convention.active) ~ ', false)') -%}
    {%- elif convention.open_end is none -%} {%- do return('(' ~ end ~ ' is null)') -%}
    {%- else -%}
        {%- do return(
            'coalesce(' ~ end ~ ' >= ' ~ dbt_history._open_end(convention) ~ ', true)'
        ) -%}
    {%- endif -%}
{% endmacro %}


{#
    The active flag; NULL means that the version is never closed. Without a flag: whether the
    version is open.
#}
{% macro _is_active_prefixed(convention) %}
    {%- do return(
        dbt_history._prefixed(convention.active) if convention.active
            else dbt_history._is_open_prefixed(convention)
    ) -%}
{% endmacro %}


{# Whether a version is closed at a finite end; one whose active flag is NULL is not. #}
{% macro _has_ended_prefixed(convention) %}
    {%- set end = dbt_history._prefixed(convention.end) -%}
    {%- set terms = [
        end ~ ' is not null' if convention.open_end is none
            else 'coalesce(' ~ end ~ ' < ' ~ dbt_history._open_end(convention) ~ ', false)'
    ] -%}
    {%- if convention.active -%}
        {%- do terms.append(
            'not coalesce(' ~ dbt_history._prefixed(convention.active) ~ ', true)'
        ) -%}
    {%- endif -%}
    {%- do return('(' ~ terms | join(' and ') ~ ')') -%}
{% endmacro %}


{# Whether a stored row is closed and empty: start = at, end = at - gap. #}
{% macro _is_empty_prefixed(convention) %}
    {%- do return(
        '(' ~ dbt_history._has_ended_prefixed(convention) ~ ' and '
            ~ dbt_history._prefixed(convention.end) ~ ' = '
            ~ dbt_history._shift_by_gap('at', convention) ~ ')'
    ) -%}
{% endmacro %}
