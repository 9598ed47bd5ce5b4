{#
    A column of the content in a form in which equal content compares equal: canonical JSON, and a
    map as its sorted entries.
#}
{% macro _content_value(features, content, name, place) %}
    {%- set value = content ~ '.p' ~ place -%}
    {%- if name | lower in features.json -%}
        {%- do return('coalesce(to_json(try_parse_json(' ~ value ~ ')), ' ~ value ~ ')') -%}
    {%- endif -%}
    {%- do return(dbt_history._comparable(value, features.payload_types[place])) -%}
{% endmacro %}
