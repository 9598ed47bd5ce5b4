{# `version_order: increasing`: a batch at a version before the current one would change what readers of that version have seen. #}
{% macro _refuse_earlier_version(target, staged, settings, plan, caller_name) %}
    {% if settings.get('version_order') != 'increasing' or plan.get('least') is none %}
        {% do return(none) %}
    {% endif %}
    {% set conv = settings.convention %}
    {% set current = run_query(
        'select ' ~ dbt_history._axis_number('version', conv) ~ ' from ' ~ dbt_history.current_version(target, conv) ~ ' as found'
    ).rows[0][0] %}
    {% if current is not none and (plan.least | int) < (current | int) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the batch is at a version before the current one; nothing of it was written',
            got=dbt_history._axis_text(plan.least, conv),
            expected=dbt_history._axis_text(current, conv) ~ ' or later (meta.history.version_order: increasing)',
            node=model.unique_id,
        )) %}
    {% endif %}
{% endmacro %}
