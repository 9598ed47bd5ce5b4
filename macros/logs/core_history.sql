{#
    The coarse log: one row per transaction, table and kind of change, with the earliest time, from
    the inbox `core_temp_history`. For a `history_append` model with unique_key ['trans_id',
    'table', 'event'] and `drain_core_temp_history` as its post-hook.

        inbox    a1 a1 b1      b1 c1       c1
        log      a1 b1         c1          (rows that the log has are not appended again)
        inbox    (emptied after each run; if a run is killed before that, by the next run)
#}
{% macro core_history(temp, codes='integer') %}
    {%- set event = dbt_history._coarse_event(codes, 'core_history') -%}
    {%- do return(
        '(\n    select trans_id, min(`user`) as `user`, `table`, ' ~ event
            ~ ' as event, min(at) as at\n    from ' ~ temp
            ~ ' as temp\n    group by trans_id, `table`, ' ~ event ~ '\n)'
    ) -%}
{% endmacro %}
