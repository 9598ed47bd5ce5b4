{#
    The log is protected against updates and deletes, and its commits, as far as they are kept,
    contain none and drop no column, except for the recorded ones of `erase_subject` and `serve`.
#}
{% test is_append_only(model) %}
{%- set problems = [] -%}
{%- if execute and model is string -%}
    {%- do exceptions.raise_compiler_error(dbt_history._message(
        'is_append_only', 'the test is of a whole table, whose commits have no rows to choose from',
        got=model, expected='a test without where',
        way_out="remove where from the test, or set it to '' if the project sets it for all tests",
    )) -%}
{%- elif execute -%}
    {%- set table = dbt_history._loaded(model, 'is_append_only') or model -%}
    {%- if not table.is_iceberg
        and dbt_history._table_property(table, 'delta.appendOnly') != 'true' -%}
        {%- do problems.append('the table property delta.appendOnly is not true') -%}
    {%- endif -%}
    {%- for entry in dbt_history._history_entries(table) -%}
        {%- set overwrites = entry.operation == 'WRITE'
            and entry.parameters.get('mode') == 'Overwrite' -%}
        {%- set recorded = {'UPDATE': 'erase_subject', 'DROP COLUMNS': 'drop_column'}.get(
            entry.operation,
        ) -%}
        {%- set is_ours = recorded and dbt_history._recorded_operation(entry) == recorded -%}
        {%- set changes_rows = overwrites or 'REPLACE TABLE' in entry.operation
            or entry.operation in [
                'DELETE', 'UPDATE', 'MERGE', 'TRUNCATE', 'RESTORE', 'DROP COLUMNS',
                'REPLACE COLUMNS',
            ] -%}
        {%- if changes_rows and not is_ours -%}
            {%- do problems.append(
                'version ' ~ entry.version ~ ' of the table was written by ' ~ entry.operation
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endif -%}
{%- set lines = [] -%}
{%- for problem in problems -%}
    {%- do lines.append('(' ~ dbt_history._string_literal(problem) ~ ')') -%}
{%- endfor %}
select cast(problem as string) as problem
from values
    {{ lines | join(',\n    ') or '(null)' }}
    as problems(problem)
where problem is not null
{% endtest %}
