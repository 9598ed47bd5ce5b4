{#
    Writes a main table back to what its mirror or event table recorded of an instant, with one
    MERGE; the next run of the mirror records that as changes, so a revert can itself be reverted.

                      to                         now        next run of the mirror
        main table    a 1, b 1                   a 2, c 1   a 1, b 1
        mirror        a 1, b 1      a 2, b gone, c 1        a 1 update, b 1 insert, c 1 delete

    dbt run-operation revert_table
        --args '{main: crmp.meta_station, to: "2024-03-03 12:00:00", author: kim, dry_run: true}'

    Nothing is written where the history cannot know the state of that instant, or the main table.
    The MERGE writes only rows that differ, and fails as a whole if one of them was changed after
    the check. `main`: a source, a model or schema.table; `to`: a time, or a tag of the history;
    `history`: the mirror or event table, where the project has several of this table.
#}
{% macro revert_table(main, to, dry_run=false, history=none, author=none, reason=none) %}
    {% set problems = [] %}
    {% set call = dbt_history._reverted_table(main, history, problems) %}
    {% do dbt_history._refuse_revert(main, problems) %}
    {% do call.update({
        'instant': dbt_history._evaluated_point(to, call.log, 'revert_table', 'to'),
    }) %}
    {% do dbt_history._check_revert(call, problems) %}
    {% do dbt_history._refuse_revert(main, problems) %}
    {% set counts = dbt_history._planned_revert(call, problems) %}
    {% do dbt_history._refuse_revert(main, problems) %}
    {% if counts.values() | sum and not dry_run %}
        {% do dbt_history._write_revert(call, author, reason) %}
    {% endif %}
    {% do log(
        'dbt_history: ' ~ call.name ~ (' would be reverted' if dry_run else ' is reverted') ~ ' to '
            ~ call.instant ~ ': rows inserted ' ~ counts.get('insert', 0) ~ ', updated '
            ~ counts.get('update', 0) ~ ', deleted ' ~ counts.get('delete', 0)
            ~ ('; run ' ~ call.log.name ~ ' to record them' if counts.values() | sum
                and not dry_run else ''),
        info=true,
    ) %}
{% endmacro %}
