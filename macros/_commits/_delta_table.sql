{#
    Deletion vectors: a batch that closes one version of a large file does not write the file again.
    A log has Delta's own property: nobody changes or removes a row of it, whatever he uses.
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
