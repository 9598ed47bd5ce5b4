{#
    A column name as an identifier: any name is right, also `start`, mixed case, spaces and
    backticks.
#}
{% macro _quote(name) %}
    {%- do return('`' ~ (name | string).replace('`', '``') ~ '`') -%}
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


{#
    A table's column inside the merge's source: prefixed, so that no name of a user's meets one of
    ours or of Delta's.
#}
{% macro _prefixed(name) %}
    {%- do return(dbt_history._quote('c_' ~ name)) -%}
{% endmacro %}


{# A SQL text literal; Spark fills in ${...} also there, so its dollar is written by its code. #}
{% macro _string_literal(value) %}
    {%- do return(
        "'" ~ (value | string).replace('\\', '\\\\').replace("'", "\\'").replace('${', '\\u0024{')
            ~ "'"
    ) -%}
{% endmacro %}


{# Column names, quoted. #}
{% macro _quoted(names) %}
    {%- set quoted = [] -%}
    {%- for name in names -%}{%- do quoted.append(dbt_history._quote(name)) -%}{%- endfor -%}
    {%- do return(quoted) -%}
{% endmacro %}
