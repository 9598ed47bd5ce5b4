{#
    Run-operation: from the end of the log on, the space has no new history. Its writes are applied,
    and each replaces the state before it; a deletion leaves no tombstone. Earlier history stays and
    can be read. `enable_space_history` ends it.

        txn      1         2         3       | 4         5
        writes   f v1      f v2      f v3    | f v4      f v5
        history  on                          | suspended
        states   [ f v1 --)[ f v2 --)                    [ f v5 --      v3 and v4 were replaced

    `space`: a value of the key column `space`, or a list; without it the table holds one space.
    Operations apply to the position in the log, not to the time at which dbt runs.
#}
{% macro suspend_space_history(
    table, writes, space=none, author=none, reason=none, dry_run=false, convention=none, key=none
) %}
    {% do dbt_history._switch_spaces('suspended', 'suspend_space_history', {
        'table': table, 'writes': writes, 'space': space, 'author': author, 'reason': reason,
        'dry_run': dry_run, 'convention': convention, 'key': key,
    }) %}
{% endmacro %}
