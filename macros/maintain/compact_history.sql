{#
    Writes small files together (Delta's OPTIMIZE), by `cluster_by` if it is given. With `vacuum_hours` it also removes files that no
    version of the last so many hours needs, which ends Delta's own time travel to before them; the history in the rows stays.
#}
{% macro compact_history(table='all', cluster_by=none, vacuum_hours=none, dry_run=false, convention=none, key=none) %}
    {% for table in dbt_history._maintained(table, convention, key, 'compact_history') %}
        {% set name = dbt_history._full_name(table.relation) %}
        {% set before = run_query('describe detail ' ~ name).rows[0]['numFiles'] %}
        {% if not dry_run %}
            {% set columns = dbt_history._quoted(dbt_history._key_columns(cluster_by)) %}
            {% do run_query('optimize ' ~ name ~ (' zorder by (' ~ columns | join(', ') ~ ')' if columns else '')) %}
            {% if vacuum_hours is not none %}
                {% do run_query('vacuum ' ~ name ~ ' retain ' ~ (vacuum_hours | int) ~ ' hours') %}
            {% endif %}
        {% endif %}
        {% set after = run_query('describe detail ' ~ name).rows[0]['numFiles'] %}
        {% do log(
            'dbt_history: ' ~ table.name ~ ': ' ~ before ~ ' files' ~ ('' if dry_run else ' are now ' ~ after)
            ~ (', older files vacuumed' if vacuum_hours is not none and not dry_run else ', vacuum_hours removes files that are no longer needed'),
            info=true
        ) %}
    {% endfor %}
{% endmacro %}
