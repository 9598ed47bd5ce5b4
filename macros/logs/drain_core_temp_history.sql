{#
    The statement that deletes from the inbox what the log has, whichever codes the log has for the
    events. The inbox is therefore not append-only: set delta.appendOnly to false for it.
#}
{% macro drain_core_temp_history(temp, core) %}
    {%- set codes = [] -%}
    {%- for form in ['words', 'integer', 'letters'] -%}
        {%- do codes.append(
            'cast(' ~ dbt_history._coarse_event(form, 'drain_core_temp_history') ~ ' as string)'
        ) -%}
    {%- endfor -%}
    {%- do return(
        'merge into ' ~ temp ~ ' as temp using ' ~ core
            ~ ' as core on temp.trans_id <=> core.trans_id and temp.`table` <=> core.`table`'
        ~ ' and cast(core.event as string) in (' ~ codes | join(', ')
            ~ ') when matched then delete'
    ) -%}
{% endmacro %}
