{#
    Run-operation: as `suspend_space_history`, and the history so far is removed: of each feature
    only the state in force stays.

        txn      1         2         3       | 4
        writes   f v1      f v2      f v3    | f v4
        history  on                          | off
        states                               | [ f v4 --

    Refused if a tag names one of the states, or if writes are pending: run the model first. Repeat
    it if it was killed, or if a run of the model that had begun before ended after it: it then
    removes what is left.
#}
{% macro disable_space_history(
    table, writes, space=none, author=none, reason=none, dry_run=false, convention=none, key=none
) %}
    {% do dbt_history._switch_spaces('off', 'disable_space_history', {
        'table': table, 'writes': writes, 'space': space, 'author': author, 'reason': reason,
        'dry_run': dry_run, 'convention': convention, 'key': key,
    }) %}
{% endmacro %}
