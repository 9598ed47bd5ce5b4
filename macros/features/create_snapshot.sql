{#
    Names one transaction in several spaces at once: a tag that is the same number in each table of
    states, or in none of them.

        dbt run-operation create_snapshot --args '{snapshot: release_7, table: [roads, pois],
        writes: edits}'

        edits    1 roads   2 pois   3 roads   4 pois | 5 roads
        roads    1                  3                |             release_7 is 4 in both
        pois               2                  4      |

    The spaces share one log, so a number means the same in all of them. Without `at` it is the last
    transaction that any of them has. `writes` is that log, or a mapping from table to what is in it
    for the table: a table that has not taken it up to the number is refused, because its snapshot
    would still change. All is checked before anything is written; the tables of one schema get the
    snapshot in one commit. A run that was killed between two schemas is repeated: the rest gets the
    number that the first have.

    Read as `as_of(ref('roads'), 'tag:release_7', 'naksha')`; cleaning respects it like any tag;
    `drop_tag` takes it away from all.
#}
{% macro create_snapshot(
    snapshot, table='all', at=none, writes=none, author=none, reason=none, dry_run=false,
    convention=none, key=none
) %}
    {% set tables = dbt_history._spaces(table, convention, key) %}
    {% set problems = [] %}
    {% do dbt_history._check_name(snapshot, none, problems) %}
    {% set point = dbt_history._point_of_snapshot(tables, snapshot, at, writes, problems) %}
    {% set missing = [] %}
    {% for table in tables %}
        {% do table.update({'instant': point | string}) %}
        {% do dbt_history._check_space(table, point, writes, problems) %}
        {% do missing.append(table) if table.tagged is none %}
    {% endfor %}
    {% do dbt_history._refuse_snapshot(snapshot, problems) %}
    {% if not dry_run and missing %}
        {% do dbt_history._add_marks(missing, 'tag', snapshot, author, reason) %}
        {% for table in missing %}
            {# A cleaning, or another snapshot of this name, that began meanwhile was first. #}
            {% do dbt_history._check_above_retention_horizon(
                table, dbt_history._marks_of(table), problems,
            ) %}
            {% do problems.append(table.name ~ ': another run made it at the same time')
                if dbt_history._number_of_tag(table, snapshot) != point %}
        {% endfor %}
        {% if problems %}
            {% for table in missing %}
                {% do dbt_history._remove_tag(table, snapshot, table.instant) %}
            {% endfor %}
            {% do dbt_history._refuse_snapshot(snapshot, problems) %}
        {% endif %}
    {% endif %}
    {% do log(
        'dbt_history: snapshot ' ~ snapshot ~ (' would be ' if dry_run and missing else ' is ')
            ~ point ~ ' of ' ~ tables | map(attribute='name') | join(', ')
        ~ ('' if missing else ', as it was'), info=true
    ) %}
    {% do return(point) %}
{% endmacro %}
