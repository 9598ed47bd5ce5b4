{#
    The same merge as a custom incremental strategy of dbt: all pending batches are applied, in one
    commit where that gives the same table (`batches_per_commit`), and the SQL that dbt runs
    afterwards changes nothing. dbt-spark does not call custom strategies by itself:
    docs/incremental_strategy.md has the shim for the root project.
#}
{% macro get_incremental_history_batch_sql(arg_dict) %}
    {% set caller_name = 'get_incremental_history_batch_sql' %}
    {% set settings = dbt_history._history_settings(model, caller_name) %}
    {% set existing = load_relation(arg_dict['target_relation']) %}
    {% set target = dbt_history._target(arg_dict['target_relation'], existing) %}
    {% set result = dbt_history._write_batches(
        target, existing, compiled_code, settings, false, caller_name,
    ) %}
    {% do return("select '" ~ dbt_history._result_message(result) ~ "' as history_batch") %}
{% endmacro %}


{#
    For the shim: on the first run dbt's incremental materialization would create the table from the
    SELECT. This creates the history table first, empty, and adds it to dbt's cache; it also refuses
    a run that would replace the table.
#}
{% macro prepare_incremental_history() %}
    {% set caller_name = 'prepare_incremental_history' %}
    {% set settings = dbt_history._history_settings(model, caller_name) %}
    {# Also without a table: dbt would replace the one that is made below. #}
    {% if should_full_refresh() %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'dbt would store the staged rows in place of the history',
            got='--full-refresh (or full_refresh: true) on ' ~ this,
            expected='a run without it', node=model.unique_id,
            way_out='set full_refresh: false on the model, which dbt prefers to the option; to'
                ~ ' build the table again, drop it first',
        )) %}
    {% endif %}
    {% do dbt_history._full_refresh(load_relation(this), settings, caller_name) %}
    {% if model.config.get('on_schema_change') not in [none, 'ignore'] %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'dbt would add the bookkeeping columns to the history table',
            got='on_schema_change: ' ~ model.config.on_schema_change,
            expected='no on_schema_change: new columns are appended', node=model.unique_id,
        )) %}
    {% endif %}
    {% if load_relation(this) is none %}
        {# The SELECT may read what the pre-hooks make. dbt runs the list later, then empty. #}
        {% do run_hooks(pre_hooks) %}
        {% do pre_hooks.clear() %}
        {% set target = dbt_history._target(this, none) %}
        {% set staged = dbt_history._stage_batches(compiled_code, target, {}) %}
        {% do dbt_history._refuse_columns(
            dbt_history._check_staged_columns(staged, settings), staged, caller_name,
        ) %}
        {% set columns = dbt_history._new_columns(staged, settings) %}
        {% do dbt_history._refuse_columns(
            dbt_history._check_void_columns(columns), staged, caller_name,
        ) %}
        {% do dbt_history._create_history_table(target, columns, settings) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do adapter.cache_added(target) %}
    {% endif %}
{% endmacro %}
