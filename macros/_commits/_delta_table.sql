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


{# Column mapping, only where a column or field has a character that Parquet files cannot hold. #}
{% macro _column_mapping(columns) %}
    {% set names = columns | map(attribute='name') | list %}
    {% for column in columns %}
        {% do names.extend(modules.re.findall('[<,]([^<>,:]*):', column.type)) %}
    {% endfor %}
    {% set is_odd = modules.re.search('[ ,;{}()=\\n\\t]', names | join('')) %}
    {% do return({'delta.columnMapping.mode': 'name'} if is_odd else {}) %}
{% endmacro %}


{#
    Before columns are added to a table: switches on what Delta needs for their names and types. A
    new table of these columns would have it from the start.
#}
{% macro _support_columns(relation, columns, caller_name) %}
    {% if relation.is_iceberg %} {% do return(none) %} {% endif %}
    {% for property, value in dbt_history._column_mapping(columns).items() %}
        {% do dbt_history._switch_on(relation, property, value, 'column mapping', caller_name) %}
    {% endfor %}
    {# A variant needs no property: Delta adds its feature itself. #}
    {% set types = columns | map(attribute='type') | join(',') | lower | replace(' ', '') %}
    {% if modules.re.search('(^|[<,:])timestamp_ntz($|[>,])', types) %}
        {% do dbt_history._switch_on(
            relation, 'delta.feature.timestampNtz', 'supported', 'times without a zone',
            caller_name,
        ) %}
    {% endif %}
{% endmacro %}


{#
    Adds fields to struct columns, without a rewrite: existing values have NULL in them. `extended`:
    columns with `fields`, see `_added_fields`.
#}
{% macro _extend_columns(relation, extended, caller_name) %}
    {% if extended %}
        {% do dbt_history._support_columns(relation, extended, caller_name) %}
        {% set added = [] %}
        {% for field in extended | map(attribute='fields') | sum(start=[]) %}
            {% do added.append(field.path ~ ' ' ~ dbt_history._ddl_type(field.type)) %}
        {% endfor %}
        {% do run_query(
            'alter table ' ~ dbt_history._quoted_relation(relation) ~ ' add columns ('
                ~ added | join(', ') ~ ')'
        ) %}
    {% endif %}
{% endmacro %}


{#
    Sets a table property unless it is set. It logs the change, because older readers may not
    support the feature.
#}
{% macro _switch_on(relation, property, value, what, caller_name) %}
    {% if dbt_history._table_property(relation, property) == value %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller_name, relation,
        'gets ' ~ what ~ ' (' ~ property ~ ' = ' ~ value ~ '): readers have to support it',
    ) %}
    {% do run_query(dbt_history._property_sql(relation, property, value)) %}
{% endmacro %}
