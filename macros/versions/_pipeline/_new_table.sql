{#
    Creates the table. It is created empty, and batches are merged into it as into an existing one,
    so that a run killed at any point leaves either no table or one that the next run can use.
#}
{% macro _create_history_table(relation, columns, settings, replace=false) %}
    {% set convention = settings.convention %}
    {% set partition_by = dbt_history._partition_columns(convention) %}
    {% set last = partition_by | map('lower') | list %}
    {% set ordered = [] %}
    {% for column in columns if column.name | lower not in last %}
        {% do ordered.append(column) %}
    {% endfor %}
    {% for column in columns if column.name | lower in last %}
        {% do ordered.append(column) %}
    {% endfor %}
    {% do dbt_history._create_table(
        relation, ordered, partition_by,
        dbt_history._properties_of_format(relation, columns, is_log=false), replace,
    ) %}
    {% do return(dbt_history._table_columns(relation)) %}
{% endmacro %}


{#
    dbt's partition_by, else the active flag: a batch without late rows then does not read the files
    of closed versions.
#}
{% macro _partition_columns(convention) %}
    {% set chosen = config.get('partition_by') %}
    {% if chosen is none %}
        {% do return([convention.active] if convention.active else []) %}
    {% endif %}
    {% do return([chosen] if chosen is string else chosen) %}
{% endmacro %}


{#
    The columns of a new table: those of the SELECT without the bookkeeping columns, the period in
    the convention's types.
#}
{% macro _new_columns(staged, settings) %}
    {% set convention = settings.convention %}
    {% set partition_by = dbt_history._partition_columns(convention) | map('lower') | list %}
    {% set columns = [] %}
    {% for column in dbt_history._added_columns(staged, []) %}
        {% set type = convention.type
            if column.name | lower in [convention.start | lower, convention.end | lower]
            else column.type %}
        {% do columns.append({
            'name': column.name,
            'type': 'boolean'
                if convention.active and column.name | lower == convention.active | lower else type,
            'is_partition': column.name | lower in partition_by,
        }) %}
    {% endfor %}
    {% do return(columns) %}
{% endmacro %}


{% macro _append_columns(relation, added, caller_name) %}
    {% do dbt_history._support_columns(relation, added, caller_name) %}
    {% set list = [] %}
    {% for column in added %}
        {% do list.append(
            dbt_history._quote(column.name) ~ ' ' ~ dbt_history._ddl_type(column.type)
        ) %}
    {% endfor %}
    {% do run_query(
        'alter table ' ~ dbt_history._quoted_relation(relation) ~ ' add columns ('
            ~ list | join(', ') ~ ')'
    ) %}
{% endmacro %}
