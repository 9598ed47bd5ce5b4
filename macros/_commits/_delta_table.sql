{#
    Deletion vectors: closing one version in a large file does not rewrite the file. A log is
    append-only by Delta's own property, so no client can change or remove its rows.
#}
{% macro _delta_properties(columns, is_log) %}
    {% do return(dict(
        dbt_history._column_mapping(columns),
        **({'delta.appendOnly': 'true'} if is_log else {'delta.enableDeletionVectors': 'true'})
    )) %}
{% endmacro %}


{# Only where a name has a character that Parquet files cannot hold. #}
{% macro _column_mapping(columns) %}
    {% set is_odd = modules.re.search(
        '[ ,;{}()=\\n\\t]', columns | map(attribute='name') | join(''),
    ) %}
    {% do return({'delta.columnMapping.mode': 'name'} if is_odd else {}) %}
{% endmacro %}
