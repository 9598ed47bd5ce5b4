{#
    The log is protected against updates and deletes, and its commits, as far as they are kept,
    contain none.
#}
{% test is_append_only(model) %}
{%- set problems = [] -%}
{%- if execute -%}
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
        {%- if overwrites or entry.operation in ['DELETE', 'UPDATE', 'MERGE', 'TRUNCATE', 'RESTORE']
            or 'REPLACE TABLE' in entry.operation -%}
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
