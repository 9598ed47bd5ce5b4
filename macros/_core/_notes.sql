{#
    A note about the model's SELECT, as a comment in its SQL. A model is compiled and run in
    different Jinja contexts that share only the SQL, so this is how the first informs the second.
#}
{% macro _note(name, value) %}
    {#- Slashes are escaped: they could end the comment, or begin a nested one. -#}
    {%- do return(
        '/* dbt_history:' ~ name ~ ' ' ~ (tojson(value) | replace('/', '\\u002f')) ~ ' */'
    ) -%}
{% endmacro %}


{# The values of all notes of a name in a SELECT. #}
{% macro _notes(name, select_sql) %}
    {% set values = [] %}
    {% for text in modules.re.findall(
        '/[*] dbt_history:' ~ name ~ ' ([{].*?[}]) [*]/', select_sql or '',
    ) %}
        {% do values.append(fromjson(text)) %}
    {% endfor %}
    {% do return(values) %}
{% endmacro %}
