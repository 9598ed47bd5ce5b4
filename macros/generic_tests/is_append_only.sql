{#
    The log is protected against updates and deletes, and its commits, as far as they are kept,
    contain none, except for the recorded updates of `erase_subject`.
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
    {%- set table = load_relation(model) or model -%}
    {%- set properties = {} -%}
    {%- for row in run_query('show tblproperties ' ~ dbt_history._quoted_relation(model)).rows -%}
        {%- do properties.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {%- if not table.is_iceberg and properties.get('delta.appendOnly') != 'true' -%}
        {%- do problems.append('the table property delta.appendOnly is not true') -%}
    {%- endif -%}
    {%- for entry in dbt_history._history_entries(table) -%}
        {%- set overwrites = entry.operation == 'WRITE'
            and entry.parameters.get('mode') == 'Overwrite' -%}
        {%- set is_erasure = entry.operation == 'UPDATE'
            and dbt_history._recorded_operation(entry) == 'erase_subject' -%}
        {%- set changes_rows = overwrites or 'REPLACE TABLE' in entry.operation
            or entry.operation in ['DELETE', 'UPDATE', 'MERGE', 'TRUNCATE', 'RESTORE'] -%}
        {%- if changes_rows and not is_erasure -%}
            {%- do problems.append(
                'version ' ~ entry.version ~ ' of the table was written by ' ~ entry.operation
            ) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endif -%}
{%- for problem in problems -%}
select {{ dbt_history._string_literal(problem) }} as problem
union all
{% endfor -%}
select cast(null as string) as problem
where 1 = 0
{% endtest %}
