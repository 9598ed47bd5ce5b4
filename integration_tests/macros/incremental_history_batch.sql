{# Enables the incremental strategy `history_batch` in this project (see docs/incremental_strategy.md in the package). #}
{% macro dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format) %}
    {% if raw_strategy != 'history_batch' %}
        {% do return(dbt_spark.dbt_spark_validate_get_incremental_strategy(raw_strategy, file_format)) %}
    {% endif %}
    {% do dbt_history.prepare_incremental_history() %}
    {% do return(raw_strategy) %}
{% endmacro %}


{% macro dbt_spark_get_incremental_sql(strategy, source, target, existing, unique_key, incremental_predicates) %}
    {% if strategy != 'history_batch' %}
        {% do return(dbt_spark.dbt_spark_get_incremental_sql(strategy, source, target, existing, unique_key, incremental_predicates)) %}
    {% endif %}
    {% do return(dbt_history.get_incremental_history_batch_sql({'target_relation': target, 'temp_relation': source, 'unique_key': unique_key})) %}
{% endmacro %}
