{% macro _compact(relation, vacuum_hours) %}
    {% do dbt_history._iceberg_compact(relation, vacuum_hours) if relation.is_iceberg
        else dbt_history._delta_compact(relation, vacuum_hours) %}
{% endmacro %}


{#
    OPTIMIZE leaves a large file with few deleted rows, whose values only a deletion vector hides:
    before VACUUM, REORG writes it without them.
#}
{% macro _delta_compact(relation, vacuum_hours) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% do run_query('optimize ' ~ name) %}
    {% if vacuum_hours is not none %}
        {% do run_query('reorg table ' ~ name ~ ' apply (purge)') %}
        {% do run_query('vacuum ' ~ name ~ ' retain ' ~ (vacuum_hours | int) ~ ' hours') %}
    {% endif %}
{% endmacro %}


{#
    A file with deleted rows is rewritten even if it is the only one. Expiring snapshots also
    removes the branches of killed runs; before it, the records of the batches are stored in a
    table property.
#}
{% macro _iceberg_compact(relation, vacuum_hours) %}
    {% set name = dbt_history._string_literal(dbt_history._quoted_relation(relation)) %}
    {% set options = "map('delete-file-threshold', '1', 'min-input-files', '2',"
        ~ " 'remove-dangling-deletes', 'true')" %}
    {% do run_query(
        'call system.rewrite_data_files(table => ' ~ name ~ ', options => ' ~ options ~ ')'
    ) %}
    {% if vacuum_hours is not none %}
        {% do dbt_history._keep_records(relation) %}
        {% set cutoff = run_query(
            'select cast(current_timestamp() - interval ' ~ (vacuum_hours | int)
                ~ ' hours as string)'
        ).rows[0][0] %}
        {% do run_query(
            'call system.expire_snapshots(table => ' ~ name ~ ", older_than => timestamp'" ~ cutoff
                ~ "', retain_last => 1)"
        ) %}
    {% endif %}
{% endmacro %}


{% macro _count_files(relation) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% if relation.is_iceberg %}
        {% do return(run_query('select count(*) from ' ~ name ~ '.files').rows[0][0]) %}
    {% endif %}
    {% do return(run_query('describe detail ' ~ name).rows[0]['numFiles']) %}
{% endmacro %}
