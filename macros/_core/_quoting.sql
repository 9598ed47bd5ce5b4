{#
    A column name as an identifier. Any name works, including `start`, mixed case, spaces and
    backticks.
#}
{% macro _quote(name) %}
    {%- do return('`' ~ (name | string).replace('`', '``') ~ '`') -%}
{% endmacro %}


{# A column name as Delta's log has it: quoted if it contains a dot. #}
{% macro _top_name(path) %}
    {% set path = path | string %}
    {% do return(path[1:-1].replace('``', '`') if path.startswith('`') else path) %}
{% endmacro %}


{# A name or a list of names as a list; none for anything else. #}
{% macro _columns_of_key(key) %}
    {%- if key is none or key is undefined or key is string -%}
        {%- do return([key] if key else []) -%}
    {%- endif -%}
    {%- set is_list = key is iterable and key is not mapping -%}
    {%- do return(key | list if is_list and key | reject('string') | list == [] else none) -%}
{% endmacro %}


{# The value of a setting that may be `none`; in yml, `none` is a text. #}
{% macro _none_or(value) %}
    {% do return(none if value is string and value | trim | lower == 'none' else value) %}
{% endmacro %}


{#
    The node that is being compiled or run; none in a run-operation, where dbt sets `model` to the
    macro.
#}
{% macro _node_of_context() %}
    {%- set id = model.unique_id if model is defined and model is mapping else none -%}
    {%- do return(none if id is string and id.startswith('macro.') else id) -%}
{% endmacro %}


{# Whether dbt compiles a unit test: its inputs are CTEs, it has no table, no settings. #}
{% macro _is_unit_test() %}
    {%- do return(
        model is defined and model is mapping and model.get('resource_type') == 'unit_test'
    ) -%}
{% endmacro %}


{#
    A table's column in the source of a merge: prefixed, so that it cannot clash with our columns or
    Delta's.
#}
{% macro _prefixed(name) %}
    {%- do return(dbt_history._quote('c_' ~ name)) -%}
{% endmacro %}


{% macro _all_prefixed(names) %}
    {%- set prefixed = [] -%}
    {%- for name in names -%}{%- do prefixed.append(dbt_history._prefixed(name)) -%}{%- endfor -%}
    {%- do return(prefixed) -%}
{% endmacro %}


{#
    An SQL text literal. Spark substitutes ${...} inside literals too, so the dollar sign is
    escaped.
#}
{% macro _string_literal(value) %}
    {%- do return(
        "'" ~ (value | string).replace('\\', '\\\\').replace("'", "\\'").replace('${', '\\u0024{')
            ~ "'"
    ) -%}
{% endmacro %}


{#
    A time as text with a clock, seconds and a zone, without which Spark refuses a literal: midnight
    and UTC unless it has them.

        2024-03-02 UTC      2024-03-02 00:00:00 UTC
        2024-03-02T10:00Z   2024-03-02T10:00:00Z
#}
{% macro _time_text(value) %}
    {%- set text = value | string -%}
    {%- set found = modules.re.search(
        ' ?([zZ]|UTC|GMT|[+-][0-9]{1,2}:[0-9]{2}|[A-Za-z_]+/[A-Za-z_/+0-9-]+)$', text,
    ) -%}
    {%- set zone = ' UTC' if found is none
        else found.group(0) | upper if found.group(1) == 'z' else found.group(0) -%}
    {%- set local = text if found is none else text[:found.start()] -%}
    {%- set clock = ' 00:00:00' if ':' not in local
        else ':00' if modules.re.search('[ T][0-9]{1,2}:[0-9]{1,2}$', local) else '' -%}
    {%- do return(local ~ clock ~ zone) -%}
{% endmacro %}


{# Column names, quoted. #}
{% macro _quoted(names) %}
    {%- set quoted = [] -%}
    {%- for name in names -%}{%- do quoted.append(dbt_history._quote(name)) -%}{%- endfor -%}
    {%- do return(quoted) -%}
{% endmacro %}
