{#
    The fields of a Delta table's schema with their metadata: {'name', 'metadata'}. DESCRIBE shows
    neither that a column is generated nor that it is a CHAR, so the newest schema is read from the
    table's log: of its JSON files, else of its checkpoint.
#}
{% macro _stored_fields(relation) %}
    {% if relation.is_iceberg %}{% do return([]) %}{% endif %}
    {% set log = run_query(
        'describe detail ' ~ dbt_history._quoted_relation(relation)
    ).rows[0]['location']
        ~ '/_delta_log/' %}
    {% set rows = run_query(
        "select get_json_object(value, '$.metaData.schemaString') from text.`" ~ log
            ~ "*.json` where value like '{\"metaData\"%' "
        ~ 'order by _metadata.file_path desc limit 1'
    ).rows %}
    {% if not rows | length %}
        {% set rows = run_query(
            'select metaData.schemaString from parquet.`' ~ log
                ~ '*.checkpoint*.parquet` where metaData is not null order by _metadata.file_path'
                ~ ' desc limit 1'
        ).rows %}
    {% endif %}
    {% do return(fromjson(rows[0][0]).fields if rows | length else []) %}
{% endmacro %}


{#
    Problems of the CHAR columns: Spark pads their texts with blanks, so that a key is not found,
    and a value differs in every run. `fields`: of `_stored_fields`.
#}
{% macro _padded_columns(fields) %}
    {% set problems = [] %}
    {% for field in fields %}
        {% set type = field.metadata.get('__CHAR_VARCHAR_TYPE_STRING') or '' %}
        {% if modules.re.search('\\bchar[(]', type) %}
            {% do problems.append(
                'column ' ~ field.name ~ ' is ' ~ type
                    ~ ', which pads texts with blanks: copy the table into one where it is a'
                    ~ ' string'
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Whether Delta numbers the rows in this column itself; no UPDATE may name it. `field`: of
    `_stored_fields`.
#}
{% macro _is_identity(field) %}
    {% do return(field.metadata.get('delta.identity.start') is not none) %}
{% endmacro %}


{# Refuses a table that this package did not write, before its first batch or append. #}
{% macro _refuse_existing(problems, expected, staged, caller_name) %}
    {% if problems %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the existing table cannot be adopted; nothing was written',
            got='\n    ' ~ problems | join('\n    '), expected=expected, node=model.unique_id,
            way_out='correct the table as each line describes, or give the model another alias',
        )) %}
    {% endif %}
{% endmacro %}
