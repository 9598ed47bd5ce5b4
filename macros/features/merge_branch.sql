{#
    Merges the changes of a branch into its parent, as one transaction at the end of the log; the
    next run of the model applies it. The branch is unchanged.

        base       {x: 1, y: 1}
        branch     {x: 1, y: 2}
        parent     {x: 5, y: 1}    ->  {x: 5, y: 2}    by column, and by top-level attribute of JSON

    dbt run-operation merge_branch --args '{table: naksha_states, writes: naksha_writes,
        branches: naksha_branches, branch: draft, app_id: editor, json: [properties]}'

    An attribute that both sides changed to different values is a conflict: all conflicts are listed
    (`branch_conflicts` returns them) and nothing is written. The writes expect the states that were
    compared: if another transaction is written in between, the merge fails as a whole and
    overwrites nothing. Returns the number of the transaction, none if there was nothing to merge.
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
