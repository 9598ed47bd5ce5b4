{#
    The coarse log: one row a transaction, table and kind of change, from the inbox
    `core_temp_history`, with the earliest time. For a `history_append` model with unique_key
    ['trans_id', 'table', 'event'] and, as its post-hook, `drain_core_temp_history`.

        inbox    a1 a1 b1      b1 c1       c1
        log      a1 b1         c1          (what the log has is not appended again)
        inbox    (emptied of what the log has: killed before, the next run empties it)
#}
{% macro core_history(temp) %}
    {%- do return(
        '(\n    select trans_id, min(user) as user, `table`, event, min(at) as at\n    from ' ~ temp
        ~ '\n    group by trans_id, `table`, event\n)'
    ) -%}
{% endmacro %}
