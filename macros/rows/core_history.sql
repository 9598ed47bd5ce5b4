{#
    The coarse log: one row a transaction, table and kind of change, from the inbox `core_temp_history`, with the earliest time. For a
    `history_append` model with unique_key ['trans_id', 'table', 'event'] and, as its post-hook, `drain_core_temp_history`.

        inbox    a1 a1 b1      b1 c1       c1
        log      a1 b1         c1          (what the log has is not appended again)
        inbox    (emptied of what the log has: killed before, the next run empties it)
#}
{% macro core_history(temp) %}
    {% do return(adapter.dispatch('core_history', 'dbt_history')(temp)) %}
{% endmacro %}


{% macro default__core_history(temp) %}
    {%- do return(
        '(\n    select trans_id, min(user) as user, `table`, event, min(at) as at\n    from ' ~ temp
        ~ '\n    group by trans_id, `table`, event\n)'
    ) -%}
{% endmacro %}


{# The statement that empties the inbox of what the log has. The inbox is then no append-only table: set delta.appendOnly to false for it. #}
{% macro drain_core_temp_history(temp, core) %}
    {%- do return(
        'merge into ' ~ temp ~ ' as temp using ' ~ core ~ ' as core on temp.trans_id <=> core.trans_id and temp.`table` <=> core.`table`'
        ~ ' and temp.event <=> core.event when matched then delete'
    ) -%}
{% endmacro %}
