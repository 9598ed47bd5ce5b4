{#
    The MERGE of a dbt snapshot, as in dbt-spark, except that for a snapshot with `meta.history` it
    closes a version according to the convention: a change ends it one gap before the next start, a
    deletion at the time of the deletion, and the active column, if there is one, becomes false.
#}
{% macro spark__snapshot_merge_sql(target, source, insert_cols) %}
    {%- set names = config.get('snapshot_table_column_names')
        or get_snapshot_table_column_names() -%}
    {%- set history = dbt_history._history_meta(model, 'snapshot_merge_sql') -%}
    {%- set convention = dbt_history.convention(history) if history else {} -%}
    {%- set open_end = config.get('dbt_valid_to_current') -%}
    {%- set old_end = 'stored.' ~ dbt_history._quote(names.dbt_valid_to) -%}
    {%- set new_end = 'changes.' ~ dbt_history._quote(names.dbt_valid_to) -%}
    {%- set has_active = convention.active
        and dbt_history._quote(convention.active) in insert_cols -%}

merge into {{ target }} as stored
using {{ source.include(schema=not source.is_iceberg) if source.is_iceberg else source }} as changes
    on changes.{{ dbt_history._quote(names.dbt_scd_id) }}
        = stored.{{ dbt_history._quote(names.dbt_scd_id) }}
when matched
    and ({{ old_end }} is null{% if open_end %} or {{ old_end }} = {{ open_end }}{% endif %})
    and changes.dbt_change_type in ('update', 'delete')
    then update set
        {{ old_end }} =
        {%- if convention.gap %} case changes.dbt_change_type
            when 'update' then {{ dbt_history._shift_by_gap(new_end, convention) }}
            else {{ new_end }}
        end
        {%- else %} {{ new_end }}{% endif %}
        {%- if has_active %},
        stored.{{ dbt_history._quote(convention.active) }} = false{% endif %}
when not matched and changes.dbt_change_type = 'insert'
    then insert *
{% endmacro %}
