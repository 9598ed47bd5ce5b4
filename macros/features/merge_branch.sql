{#
    Brings what was changed on a branch to its parent, as one transaction at the end of the log; the
    next run of the model applies it. The branch stays as it is.

        base       {x: 1, y: 1}
        branch     {x: 1, y: 2}
        parent     {x: 5, y: 1}    ->  {x: 5, y: 2}    by column, and by top-level attribute of JSON

    dbt run-operation merge_branch --args '{table: naksha_states, writes: naksha_writes, branches:
    naksha_branches, branch: draft, app_id: editor, json: [properties]}'

    An attribute that both sides changed differently is a conflict: all are listed
    (`branch_conflicts` reads them) and nothing is written. The writes expect the states that were
    compared, so a transaction that comes in between makes the merge fail as a whole, not overwrite.
    Returns the number of the transaction, or none where there was nothing to bring.
#}
{% macro merge_branch(
    table, writes, branches, branch, app_id, payload=none, json=[], author=none, message=none,
    at=none, even_if_ahead=false, dry_run=false, convention=none, key=none
) %}
    {% set call = dbt_history._branch_call(
        table, branches, branch, 'merge_branch', convention, key, author, message,
    ) %}
    {% set said = {'app_id': app_id, 'author': author, 'message': message, 'at': at} %}
    {% do return(
        dbt_history._merge_or_rebase(
            call, writes, 'merge', payload, json, said, even_if_ahead, dry_run,
        ).txn
    ) %}
{% endmacro %}
