{#
    The statement that deletes from the inbox what the log has. The inbox is therefore not
    append-only: set delta.appendOnly to false for it.
#}
{% macro drain_core_temp_history(temp, core) %}
    {%- do return(
        'merge into ' ~ temp ~ ' as temp using ' ~ core
            ~ ' as core on temp.trans_id <=> core.trans_id and temp.`table` <=> core.`table`'
        ~ ' and temp.event <=> core.event when matched then delete'
    ) -%}
{% endmacro %}
