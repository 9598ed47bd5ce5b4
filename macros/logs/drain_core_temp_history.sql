{#
    The statement that empties the inbox of what the log has. The inbox is then no append-only
    table: set delta.appendOnly to false for it.
#}
{% macro drain_core_temp_history(temp, core) %}
    {%- do return(
        'merge into ' ~ temp ~ ' as temp using ' ~ core
            ~ ' as core on temp.trans_id <=> core.trans_id and temp.`table` <=> core.`table`'
        ~ ' and temp.event <=> core.event when matched then delete'
    ) -%}
{% endmacro %}
