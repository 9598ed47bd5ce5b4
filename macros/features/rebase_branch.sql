{#
    Moves the base of a branch to the end of the log, so that it includes the changes of the parent
    since the fork; with `even_if_ahead` to the last transaction that the states have applied. The
    branch's own changes are merged three-way and written to it, as one transaction at the end of
    the log; everything else is inherited from the new base.

        base       {x: 1, y: 1}                  {x: 5, y: 1}   the new base
        branch     {x: 1, y: 2}    ->            {x: 5, y: 2}
        parent     {x: 5, y: 1}

    dbt run-operation rebase_branch --args '{table: naksha_states, writes: naksha_writes,
        branches: naksha_branches, branch: draft, app_id: editor, json: [properties]}'

    Conflicts as in `merge_branch`. After being killed, or if another writer added to the log at the
    same time, it can be run again: what was already merged is equal on both sides.
#}
{% macro rebase_branch(
    table, writes, branches, branch, app_id, payload=none, json=[], author=none, message=none,
    at=none, even_if_ahead=false, dry_run=false, convention=none, key=none
) %}
    {% set call = dbt_history._branch_call(
        table, branches, branch, 'rebase_branch', convention, key, author, message,
    ) %}
    {% set said = {'app_id': app_id, 'author': author, 'message': message, 'at': at} %}
    {% set done = dbt_history._merge_or_rebase(
        call, writes, 'rebase', payload, json, said, even_if_ahead, dry_run,
    ) %}
    {% if not dry_run %}
        {% set since = done.txn or done.head %}
        {# A base that the states have not reached yet stays. #}
        {% set base = [done.compared, call.epoch.at] | max %}
        {% set bases = dbt_history._protect_bases(
            call, 'rebase', call.epoch.parent, base, since,
        ) %}
        {% do dbt_history._add_branch_fact(
            call, 'rebase', since, call.epoch.parent, base, writes,
        ) %}
        {% do dbt_history._release_other_bases(call, bases) %}
    {% endif %}
    {% do return(done.txn) %}
{% endmacro %}
