{#
    The changes of `relation` since the last batch of the model that contains this call: one row per
    inserted or deleted record, two per updated record.

        versions of the relation   0     1     2     3     4     5
        taken by the model before  [-----------]
        this run                               (------------------]
                                                constants in the SQL, committed with the rows: the
                                                next run begins after version 5

    Without `key`, it is that of the relation, or the `unique_key` of the model.

    Returns a sub-query for the FROM clause. For a `history_append` or `history_batch` model: their
    commits record how far the relation was read. docs/flow/history_append.md describes how the rows
    are found.
#}
{% macro changes(relation, key=none, method='auto', changed_by=none, noop_updates='record') %}
    {%- set key = dbt_history._key_of(relation, key, 'changes', or_own=true) -%}
    {%- set capture = dbt_history._plan_capture(relation, key, method, 'changes') -%}
    {%- if capture.taken is defined
        and model.config.get('materialized') in ['history_batch', 'incremental'] -%}
        {%- do dbt_history._let_times_increase(capture) -%}
        {%- do capture.update({
            'partly_said': dbt_history._partly_said_columns(capture),
            'renamed': dbt_history._columns_under_former_names(capture),
        }) -%}
    {%- elif capture.taken is defined and not capture.taken.other_sources -%}
        {%- set former = dbt_history._former_names(capture) -%}
        {%- do capture.update({'about': {'changes': former}}) if former -%}
    {%- endif -%}
    {%- do return(dbt_history._changes_sql(capture, noop_updates, changed_by)) -%}
{% endmacro %}
