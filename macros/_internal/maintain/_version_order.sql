{#
    `version_order: increasing`: a batch at a version before the current one would change what readers of that version have seen. One
    that changes nothing may come again: a SELECT without numbers returns all its rows on every run.
#}
{% macro _refuse_earlier_version(target, staged, columns, settings, plan, caller_name) %}
    {% if settings.get('version_order') != 'increasing' or plan.get('least') is none %}
        {% do return(none) %}
    {% endif %}
    {% set conv = settings.convention %}
    {% set current = run_query(
        'select ' ~ dbt_history._axis_number('version', conv) ~ ' from ' ~ dbt_history.current_version(target, conv) ~ ' as found'
    ).rows[0][0] %}
    {% set is_earlier = current is not none and (plan.least | int) < (current | int) %}
    {% if is_earlier and dbt_history._changes_anything(target, staged, columns, settings, plan) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the batch is at a version before the current one; nothing of it was written',
            got=dbt_history._axis_text(plan.least, conv),
            expected=dbt_history._axis_text(current, conv) ~ ' or later (meta.history.version_order: increasing)',
            node=model.unique_id,
        )) %}
    {% endif %}
{% endmacro %}


{# Whether the batch would change a row of the table. #}
{% macro _changes_anything(target, staged, columns, settings, plan) %}
    {% set sql %}
        with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(8) }}

        select count(*)
        from resolved
        where op <> 'skip'
    {% endset %}
    {% do return((run_query(sql).rows[0][0] | int) > 0) %}
{% endmacro %}
