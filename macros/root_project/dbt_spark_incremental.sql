{#
    The shim that makes dbt-spark's `incremental` accept the strategy `history_batch`. dbt looks up
    such macros only in the root project: this copy works for this project, and a project that
    installs the package adds its own (docs/incremental_strategy.md). Every other strategy is passed
    on to dbt-spark.
#}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
    {% if raw_strategy != 'history_batch' %}
        {% do return(dbt_spark.dbt_spark_validate_get_incremental_strategy(
            raw_strategy, file_format,
        )) %}
    {% endif %}
    {% do dbt_history.prepare_incremental_history() %}
    {% do return(raw_strategy) %}
{% endmacro %}


{% macro dbt_spark_get_incremental_sql(
    strategy, source, target, existing, unique_key, incremental_predicates
) %}
    {% if strategy != 'history_batch' %}
        {% do return(dbt_spark.dbt_spark_get_incremental_sql(
            strategy, source, target, existing, unique_key, incremental_predicates,
        )) %}
    {% endif %}
    {% do return(dbt_history.get_incremental_history_batch_sql(
        {'target_relation': target, 'temp_relation': source, 'unique_key': unique_key}
    )) %}
{% endmacro %}
