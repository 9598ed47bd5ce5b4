{#
    Whether to replace the table. Refuses a full refresh that the model does not allow, and what
    would refuse the commits later, before anything is written.
#}
{% macro _full_refresh(existing, settings, caller_name) %}
    {% do dbt_history._refuse_shared_session() %}
    {% set problem = dbt_history._format_problem(existing) %}
    {% if problem is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, problem, got=existing,
            expected='a table of the format of the model (Delta, or file_format: iceberg), or none'
                ~ ' yet',
            node=model.unique_id,
            way_out='rename the existing table, or give the model another alias',
        )) %}
    {% endif %}
    {% if existing is not none and existing.is_view %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the target is a view', got=existing,
            expected='a Delta table, or none yet', node=model.unique_id,
            way_out='drop the view, or give the model another alias',
        )) %}
    {% endif %}
    {% do dbt_history._refuse_taken_pointer(caller_name) %}
    {% do dbt_history._refuse_left_table(existing, settings, caller_name) %}
    {% if existing is none or not should_full_refresh() %}
        {% do return(false) %}
    {% endif %}
    {% if not settings.allow_full_refresh %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'a full refresh would replace the existing history',
            got='--full-refresh (or full_refresh: true) on ' ~ existing,
            expected='a run without it',
            node=model.unique_id,
            way_out='set full_refresh: false on the model, which dbt prefers to the option: then'
                ~ ' --full-refresh leaves it as it is, and builds the others; to replace the'
                ~ ' history, set meta.history.allow_full_refresh: true'
            ~ (
                '; it begins with the rows of today, because the SELECT returns what there is'
                    ~ ' now, and the past cannot be built again from it'
                    if settings.get('source') == 'state'
                    else ', if the SELECT still returns all batches since the first'
            ),
        )) %}
    {% endif %}
    {% if dbt_history._is_suspended(dbt_history._commit_log(existing, model.unique_id)) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'a full refresh would end the suspension of the table; nothing was written',
            got='--full-refresh (or full_refresh: true) on ' ~ existing ~ ', which is suspended',
            expected='a table that takes changes', node=model.unique_id,
            way_out='resume_history first, or run without --full-refresh',
        )) %}
    {% endif %}
    {% do return(true) %}
{% endmacro %}
