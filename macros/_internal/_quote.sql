{# A column name as an identifier: any name is right, also `start`, mixed case, spaces and backticks. #}
{% macro _quote(name) %}
    {%- do return('`' ~ (name | string).replace('`', '``') ~ '`') -%}
{% endmacro %}


{# `key` as a list of column names: a name or a list. #}
{% macro _key_columns(key) %}
    {%- set columns = dbt_history._columns_of_key(key) -%}
    {%- if columns is none -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'key', 'this names no columns', got=tojson(key, key), expected='the name of a column, or a list of names',
            node=dbt_history._node_of_context(),
        )) -%}
    {%- endif -%}
    {%- do return(columns) -%}
{% endmacro %}


{# None for what is neither a name nor a list of names. #}
{% macro _columns_of_key(key) %}
    {%- if key is none or key is undefined or key is string -%}
        {%- do return([key] if key else []) -%}
    {%- endif -%}
    {%- set is_list = key is iterable and key is not mapping -%}
    {%- do return(key | list if is_list and key | reject('string') | list == [] else none) -%}
{% endmacro %}


{# The node that is compiled or run; none in a run-operation, where dbt gives its macro for one. #}
{% macro _node_of_context() %}
    {%- set id = model.unique_id if model is defined and model is mapping else none -%}
    {%- do return(none if id is string and id.startswith('macro.') else id) -%}
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
