{# One form for every message: what is wrong, got, expected, where, and the way out. #}
{% macro _message(macro_name, problem, got=none, expected=none, way_out=none, node=none) %}
    {% set lines = ['dbt_history.' ~ macro_name ~ ': ' ~ problem] %}
    {% if got is not none %}{% do lines.append('  got: ' ~ got) %}{% endif %}
    {% if expected is not none %}{% do lines.append('  expected: ' ~ expected) %}{% endif %}
    {% if node is not none %}{% do lines.append('  in model: ' ~ node) %}{% endif %}
    {% if way_out is not none %}{% do lines.append('  way out: ' ~ way_out) %}{% endif %}
    {% do return(lines | join('\n')) %}
{% endmacro %}
