{#
    What changed in `relation` since the model that stands around this took its last batch: one row
    an inserted or deleted record, two an updated one.

        versions of the relation   0     1     2     3     4     5
        taken by the model before  [-----------]
        this run                               (------------------]   constants in the SQL
                                                                  '- committed together with the
                                                                  rows, so that the next
                                                                     run begins after it

    Returns a sub-query to put after FROM. For a `history_append` or `history_batch` model: their
    commit holds how far the relation was read. How the rows are found is
    docs/flow/history_append.md.
#}
{% macro changes(relation, key, method='auto', changed_by=none, noop_updates='record') %}
    {%- set capture = dbt_history._plan_capture(relation, key, method, caller_name='changes') -%}
    {%- do return(dbt_history._changes_sql(capture, changed_by, noop_updates)) -%}
{% endmacro %}
