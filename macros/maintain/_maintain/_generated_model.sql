{#
    The model to generate for one tracked table: {'name', 'kind', 'key', 'references', 'main',
    'of'}; errors are appended to `problems`.
#}
{% macro _generated_model(node, said, problems) %}
    {% set kind = said.get('kind') or dbt_history._node_meta(node).get('history_kind') or 'hx' %}
    {% set key = dbt_history._key_columns(said.get('key')) or dbt_history._key_of_node(node) %}
    {% if kind not in ['hx', 'events'] %}
        {% do problems.append(node.unique_id ~ ': kind is ' ~ kind ~ ': hx or events') %}
    {% endif %}
    {% if not key %}
        {% do problems.append(node.unique_id ~ ': it has no key') %}
    {% endif %}
    {% set known = ['kind', 'key', 'references', 'name']
        + (['empty_string'] if node.resource_type == 'seed' else []) %}
    {% for problem in dbt_history._unknown_settings(said, known) %}
        {% do problems.append(node.unique_id ~ ': ' ~ problem) %}
    {% endfor %}
    {% set version = node.get('version') %}
    {% set main = "source('" ~ node.source_name ~ "', '" ~ node.name ~ "')"
        if node.resource_type == 'source'
        else "ref('" ~ node.name ~ "'"
            ~ (', v=' ~ tojson(version) if version is not none else '') ~ ")" %}
    {% do return({
        'kind': kind, 'key': key, 'main': main, 'of': node.name,
        'references': said.get('references', []),
        'name': said.get('name') or node.name ~ ('_hx' if kind == 'hx' else '_history'),
    }) %}
{% endmacro %}


{# The text of a model's file: the same settings give the same text, which is not written again. #}
{% macro _generated_sql(table) %}
    {%- set lines = [
        "{{ config(materialized='history_append') }}", '',
        'select * from {{ dbt_history.' ~ ('hx_rows' if table.kind == 'hx' else 'event_rows') ~ '(',
        '    ' ~ table.main ~ ',', '    key=' ~ tojson(table.key) ~ ',',
    ] -%}
    {%- if table.references -%}
        {%- do lines.append('    references=[') -%}
        {%- for reference in table.references -%}
            {%- set fields = [] -%}
            {%- for field, value in reference.items() -%}
                {%- do fields.append(
                    "'" ~ field ~ "': "
                        ~ ("ref('" ~ value ~ "')" if field == 'history' else tojson(value))
                ) -%}
            {%- endfor -%}
            {%- do lines.append('        {' ~ fields | join(', ') ~ '},') -%}
        {%- endfor -%}
        {%- do lines.append('    ],') -%}
    {%- endif -%}
    {%- do lines.append(') }} as history') -%}
    {%- do return(lines | join('\n')) -%}
{% endmacro %}


{# The text of the yml of all generated models: their grain, and the tests of a log. #}
{% macro _generated_yml(tracked) %}
    {%- set lines = ['version: 2', '', 'models:'] -%}
    {%- for table in tracked -%}
        {%- do lines.append('  - name: ' ~ table.name) -%}
        {%- do lines.append(
            '    description: One row per ' ~ ('change' if table.kind == 'hx' else 'event')
                ~ ' of a row of ' ~ table.of ~ '.'
        ) -%}
        {%- do lines.append('    data_tests:') -%}
        {%- do lines.append('      - dbt_history.is_append_only') -%}
        {%- if table.kind == 'hx' -%}
            {%- do lines.append('      - dbt_history.mirrors_main:') -%}
            {%- do lines.append('          arguments:') -%}
            {%- do lines.append('            main: ' ~ table.main) -%}
            {%- do lines.append('            key: ' ~ tojson(table.key)) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(lines | join('\n')) -%}
{% endmacro %}
