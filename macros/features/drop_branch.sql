{#
    Drops a branch: it can no longer be read or written, and its base may be cleaned. Its states
    stay in the table but are not visible; a later branch of the same name does not show them.
#}
{% macro drop_branch(
    table, writes, branches, branch, author=none, reason=none, dry_run=false, convention=none,
    key=none
) %}
    {% set call = dbt_history._branch_call(
        table, branches, branch, 'drop_branch', convention, key, author, reason,
    ) %}
    {% if call.epoch is none %}
        {% do call.problems.append('there is no branch ' ~ branch) %}
    {% endif %}
    {% for epoch in call.epochs if epoch.until is none and epoch.parent == branch %}
        {% do call.problems.append('branch ' ~ epoch.branch ~ ' is based on it') %}
    {% endfor %}
    {% do dbt_history._refuse_branch(call, 'the branch cannot be dropped') %}
    {% if not dry_run %}
        {% do dbt_history._add_branch_fact(
            call, 'drop', dbt_history._head_of_log(writes, call.table.relation).txn, writes=writes,
        ) %}
        {% do dbt_history._remove_tag(call.table, 'branch:' ~ branch) %}
    {% endif %}
    {% do log(
        'dbt_history: branch ' ~ branch ~ (' would be dropped' if dry_run else ' is dropped'),
        info=true,
    ) %}
{% endmacro %}
