{# What the table's log records of its batches: see the macro of each format. #}
{% macro _commit_log(relation, node_id) %}
    {% do return(
        dbt_history._iceberg_commit_log(relation) if relation.is_iceberg
            else dbt_history._delta_commit_log(relation, node_id)
    ) %}
{% endmacro %}


{# The table's commits, newest first; without `limit` all that are retained. #}
{% macro _history_entries(relation, limit=none) %}
    {% do return(
        dbt_history._iceberg_history_entries(relation, limit) if relation.is_iceberg
            else dbt_history._delta_history_entries(relation, limit)
    ) %}
{% endmacro %}
