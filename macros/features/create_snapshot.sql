{#
    Names one transaction in several spaces: the tag has the same number in each table of states, or
    does not exist in any of them.

    dbt run-operation create_snapshot --args '{snapshot: release_7, table: [roads, pois],
        writes: edits}'

        edits    1 roads   2 pois   3 roads   4 pois | 5 roads
        roads    1                  3                |             release_7 is 4 in both
        pois               2                  4      |

    The spaces share one log, so a number means the same in all of them. Without `at` it is the last
    transaction of any of them. `writes` is that log, or a mapping from table to its part of the
    log: a table that has not applied the log up to the number is refused, because its snapshot
    would still change. Everything is checked before anything is written; the tables of one schema
    get the snapshot in one commit. If a run is killed between two schemas, repeat it: the remaining
    tables get the same number.

    Read it as `as_of(ref('roads'), 'tag:release_7', 'naksha')`; cleaning respects it like any tag;
    `drop_tag` removes it from all.
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
        {% do table.update({'ends_of_spaces': dbt_history._ends_of_spaces(table)}) %}
        {% do missing.append(table) if table.tagged is none %}
    {% endfor %}
    {% do dbt_history._refuse_snapshot(snapshot, problems) %}
    {% if not dry_run and missing %}
        {% do dbt_history._add_tags(missing, snapshot, problems, author, reason) %}
        {% do dbt_history._check_ends_again(missing, problems) %}
        {% for table in missing if not problems %}
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
