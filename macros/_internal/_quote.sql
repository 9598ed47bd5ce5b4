{# A column name as an identifier: any name is right, also `start`, mixed case, spaces and backticks. #}
{% macro _quote(name) %}
    {%- do return('`' ~ (name | string).replace('`', '``') ~ '`') -%}
{% endmacro %}


{# `key` as a list of column names: a name or a list. #}
{% macro _key_columns(key) %}
    {%- do return([key] if key is string else (key or []) | list) -%}
{% endmacro %}


{# A table's column inside the merge's source: prefixed, so that no name of a user's meets one of ours or of Delta's. #}
{% macro _c(name) %}
    {%- do return(dbt_history._quote('c_' ~ name)) -%}
{% endmacro %}


{# The identity of a version inside its key, without the key: start, and the version id where it is another column. #}
{% macro _identity_columns(conv) %}
    {%- do return([conv.start] if conv.version_id | lower == conv.start | lower else [conv.start, conv.version_id]) -%}
{% endmacro %}


{# A relation with every part quoted: Delta's own commands take no bare `history`, and names may be odd. #}
{% macro _full_name(relation) %}
    {%- set parts = (relation.schema | string).replace('`', '').split('.') + [relation.identifier] -%}
    {%- set quoted = [] -%}
    {%- for part in parts -%}{%- do quoted.append(dbt_history._quote(part)) -%}{%- endfor -%}
    {%- do return(quoted | join('.')) -%}
{% endmacro %}
