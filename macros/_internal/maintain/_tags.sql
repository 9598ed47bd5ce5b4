{# A tag below the horizon would promise what is no longer there. #}
{% macro _check_above_horizon(table, marks, problems) %}
    {% if table.instant is not none and marks.horizon is not none %}
        {% set number = run_query(
            'select ' ~ dbt_history._axis_number(dbt_history._literal(table.instant, table.conv), table.conv)
        ).rows[0][0] | int %}
        {% if number < marks.horizon %}
            {% do problems.append(
                table.name ~ ': ' ~ table.instant ~ ' lies below the horizon ' ~ dbt_history._axis_text(marks.horizon, table.conv)
            ) %}
        {% endif %}
    {% endif %}
{% endmacro %}


{% macro _refuse_tag(tag, problems) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'create_tag', 'the tag ' ~ tag ~ ' cannot be made; no table got it', got='\n    ' ~ problems | join('\n    '),
            way_out='choose a point at or after the horizon, or drop_tag first',
        )) %}
    {% endif %}
{% endmacro %}
