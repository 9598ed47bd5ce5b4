{#
    What a node says under `meta.history`, as a mapping; empty where it says nothing, or only true. Text is the name of a convention.
    Another type, and a name under `meta` that is `history` misspelt, are refused.
#}
{% macro _history_meta(node, caller_name) %}
    {% set problem = dbt_history._meta_problem(node) %}
    {% if problem is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the metadata of the node is not right', got=problem,
            expected='meta: {history: <convention>}, meta: {history: {<setting>: <value>}} or meta: {history: true}', node=node.unique_id,
        )) %}
    {% endif %}
    {% set said = dbt_history._node_meta(node).get('history') %}
    {% do return({'convention': said} if said is string else dict(said) if said is mapping else {}) %}
{% endmacro %}


{% macro _node_meta(node) %}
    {% do return((node.get('config') or {}).get('meta') or node.get('meta') or {}) %}
{% endmacro %}


{# What is wrong with the metadata as such, as text; none if nothing is. #}
{% macro _meta_problem(node) %}
    {% set meta = dbt_history._node_meta(node) %}
    {% for name in meta if name is string and name != 'history' and dbt_history._edit_distance(name | lower, 'history') < 2 %}
        {% do return('meta has ' ~ name ~ ', did you mean history?') %}
    {% endfor %}
    {% set said = meta.get('history') %}
    {% if said is none or said is boolean or said is mapping or (said is string and said | trim) %}
        {% do return(none) %}
    {% endif %}
    {% do return('meta.history is ' ~ tojson(said)) %}
{% endmacro %}


{# The convention that these settings name; `default` where they name none. #}
{% macro _node_convention(node, meta, default) %}
    {% set named = meta if meta.get('convention') or meta.get('start') else dict(meta, convention=default) %}
    {% do return(dbt_history.convention(dict(named, node=node.unique_id) if node else named)) %}
{% endmacro %}


{# ', did you mean <name>?' for the known name that is nearest, or nothing. #}
{% macro _did_you_mean(name, known) %}
    {% set best = namespace(name=none, distance=3) %}
    {% for other in known %}
        {% set distance = dbt_history._edit_distance(name | string | lower, other | lower) %}
        {% if distance < [best.distance, other | length] | min %}
            {% set best.name, best.distance = other, distance %}
        {% endif %}
    {% endfor %}
    {% do return(', did you mean ' ~ best.name ~ '?' if best.name else '') %}
{% endmacro %}


{# How many letters have to be added, removed, changed, or swapped with their neighbour, to make one word of the other. #}
{% macro _edit_distance(one, other) %}
    {% set rows = [range(other | length + 1) | list] %}
    {% for i in range(one | length) %}
        {% set row = [i + 1] %}
        {% for j in range(other | length) %}
            {% set costs = [rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (0 if one[i] == other[j] else 1)] %}
            {% if i and j and one[i] == other[j - 1] and one[i - 1] == other[j] %}
                {% do costs.append(rows[i - 1][j - 1] + 1) %}
            {% endif %}
            {% do row.append(costs | min) %}
        {% endfor %}
        {% do rows.append(row) %}
    {% endfor %}
    {% do return(rows[-1][-1]) %}
{% endmacro %}
