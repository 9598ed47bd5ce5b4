{#
    The form of every message: what is wrong, got, expected, in which model, and the way out.
    `caller_name`: the macro or materialization; none where it is not known.
#}
{% macro _message(caller_name, problem, got=none, expected=none, way_out=none, node=none) %}
    {% set lines = ['dbt_history' ~ ('.' ~ caller_name if caller_name else '') ~ ': ' ~ problem] %}
    {% if got is not none %}{% do lines.append('  got: ' ~ got) %}{% endif %}
    {% if expected is not none %}{% do lines.append('  expected: ' ~ expected) %}{% endif %}
    {% if node is not none %}{% do lines.append('  in model: ' ~ node) %}{% endif %}
    {% if way_out is not none %}{% do lines.append('  way out: ' ~ way_out) %}{% endif %}
    {% do return(lines | join('\n')) %}
{% endmacro %}


{# ', did you mean <name>?' for the most similar known name, or ''. #}
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


{#
    The number of letters to insert, delete, replace, or swap with their neighbour to turn one word
    into the other.
#}
{% macro _edit_distance(one, other) %}
    {% set rows = [range(other | length + 1) | list] %}
    {% for i in range(one | length) %}
        {% set row = [i + 1] %}
        {% for j in range(other | length) %}
            {% set costs = [
                rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (0 if one[i] == other[j] else 1),
            ] %}
            {% if i and j and one[i] == other[j - 1] and one[i - 1] == other[j] %}
                {% do costs.append(rows[i - 1][j - 1] + 1) %}
            {% endif %}
            {% do row.append(costs | min) %}
        {% endfor %}
        {% do rows.append(row) %}
    {% endfor %}
    {% do return(rows[-1][-1]) %}
{% endmacro %}


{% macro _log_info(caller_name, relation, text) %}
    {% do log('dbt_history.' ~ caller_name ~ ': ' ~ relation ~ ' ' ~ text, info=true) %}
{% endmacro %}
