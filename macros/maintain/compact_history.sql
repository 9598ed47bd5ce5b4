{#
    Combines small files (OPTIMIZE; Iceberg: rewrite_data_files). With `vacuum_hours` it also
    removes files that no version of the last so many hours needs (VACUUM; expire_snapshots): the
    format's own time travel to earlier versions ends, the history in the rows is kept. All rows are
    kept, so logs (history_append) are compacted, too.
#}
{% macro compact_history(
    table='all', vacuum_hours=none, dry_run=false, convention=none, key=none
) %}
    {% if vacuum_hours is not none
        and not modules.re.match('^[0-9]+$', vacuum_hours | string) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'compact_history', 'vacuum_hours is not valid; nothing was done', got=vacuum_hours,
            expected='a whole number of hours, such as 168',
        )) %}
    {% endif %}
    {% for table in dbt_history._maintained(
        table, convention, key, 'compact_history', keeps_rows=true,
    ) %}
        {% set before = dbt_history._count_files(table.relation) %}
        {% if not dry_run %}
            {% do dbt_history._compact(table.relation, vacuum_hours) %}
        {% endif %}
        {% set after = dbt_history._count_files(table.relation) %}
        {% do log(
            'dbt_history: ' ~ table.name ~ ': ' ~ before ~ ' files'
                ~ ('' if dry_run else ' are now ' ~ after)
            ~ (
                ', older files vacuumed' if vacuum_hours is not none and not dry_run
                    else ', vacuum_hours removes files that are no longer needed'
            ),
            info=true
        ) %}
    {% endfor %}
{% endmacro %}
