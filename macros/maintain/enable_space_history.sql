{#
    Run-operation: from the end of the log on, every state of the space is kept again. What was
    replaced in the meantime is not restored: the first state that is kept is the one in force when
    the first later write arrives.

        txn      1         2         3       | 4         5         6
        writes   f v1      f v2      f v3    | f v4      f v5      f v6
        history  suspended after 1           on
        states             [ f v1 was replaced by v2, v2 by v3 ]
                                     [ f v3 -)[ f v4 ---)[ f v5 --)[ f v6 --

    dbt run-operation enable_space_history --args '{table: naksha_states, writes: naksha_writes,
        space: roads}'
#}
{% macro enable_space_history(
    table, writes, space=none, author=none, reason=none, dry_run=false, convention=none, key=none
) %}
    {% do dbt_history._switch_spaces('on', 'enable_space_history', {
        'table': table, 'writes': writes, 'space': space, 'author': author, 'reason': reason,
        'dry_run': dry_run, 'convention': convention, 'key': key,
    }) %}
{% endmacro %}
