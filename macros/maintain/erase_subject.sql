{#
    Erases one record's data in all its versions: the columns become NULL; keys, periods and the
    number of versions are kept. The same is done in `mirrors`, such as `_hx` and event tables with
    the same key. `table` may be such a log itself, if there is no version table: its ids, links,
    times and users are kept. The erasure is recorded, without the value of the key.

    dbt run-operation erase_subject --args '{table: customers, only: {customer_id: 7},
        mirrors: [customers_hx], reason: "request 12"}'

    `mirrors`: names, or `all` for the project's history tables that are filled from the same
    source; of feature states, for the log of writes that their model reads. `columns`: what to
    erase, by default everything except key and period; in a log also the former names of a column
    that was renamed. All tables are checked before the first one is changed. Repeating the call
    completes the erasure of a killed run, and changes nothing if everything is erased. Older files
    still hold the data until they are vacuumed, which compact_history does. Delete the record in
    its source first and run the tables: a change that one has not read and that would bring the
    data back is refused. The tables that it is made from, such as a landing table, and dbt's
    snapshots of the same source are named if they are not erased: name them in `mirrors`.
#}
{% macro erase_subject(
    table, only, columns=none, mirrors=[], dry_run=false, convention=none, key=none, author=none,
    reason=none
) %}
    {% set problems = [] %}
    {% set main = dbt_history._subject_table(table, convention, key, problems) %}
    {% set places = dbt_history._erased_places(main, only, columns, mirrors, problems) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'erase_subject', 'this cannot be erased; nothing was changed',
            got='\n    ' ~ problems | join('\n    '),
            expected='only: {key column: value, ...} for all of ' ~ main.key | join(', ')
                ~ '; columns and mirrors as lists of names',
        )) %}
    {% endif %}
    {% for place in places %}
        {% if not dry_run %}
            {% do dbt_history._erase_place(place, only) %}
        {% endif %}
        {% do log(
            'dbt_history: ' ~ place.name ~ ': ' ~ place.rows ~ ' versions '
                ~ ('would be erased' if dry_run else 'erased')
            ~ (
                ' (' ~ (place.rows - place.changed) ~ ' were before)' if place.changed != place.rows
                    else ''
            )
            ~ ', columns ' ~ place.columns | map(attribute='name') | join(', ')
            ~ (', not erased: ' ~ place.left | join(', ') if place.left else ''),
            info=true,
        ) %}
    {% endfor %}
    {% for table in dbt_history._not_erased(main, places) %}
        {% do log('dbt_history: ' ~ table ~ ', is not erased', info=true) %}
    {% endfor %}
    {% if not dry_run %}
        {% if places | sum(attribute='changed') or not dbt_history._has_erasure(main, only) %}
            {% do dbt_history._add_mark(
                main, 'erasure', name=dbt_history._subject_hash(only, invocation_id), author=author,
                reason=reason,
            ) %}
        {% endif %}
        {% do log(
            'dbt_history: older files hold the data until compact_history with vacuum_hours'
                ~ ' removes them',
            info=true,
        ) %}
    {% endif %}
{% endmacro %}
