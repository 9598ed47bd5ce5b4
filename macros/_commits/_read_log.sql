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


{#
    The newest commits of a table, at least from `version` on if it is in the log. `entries`: those
    that were read before; versions have no gaps, so their newest one says how many are needed.
#}
{% macro _entries_back_to(relation, entries, version) %}
    {% set limit = entries[0].version - version + 1 %}
    {% set found = entries if entries[-1].version <= version
        else dbt_history._history_entries(relation, limit) %}
    {# Commits made meanwhile count, too. #}
    {% if found[-1].version > version and found | length >= limit %}
        {% set found = dbt_history._history_entries(relation) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# A table at the version of an entry of its log, for the FROM clause. #}
{% macro _at_version(relation, version) %}
    {%- do return(dbt_history._quoted_relation(relation) ~ ' version as of ' ~ version) -%}
{% endmacro %}
