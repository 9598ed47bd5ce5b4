{#
    Drops a branch: it can no longer be read or written, and its base may be cleaned. Its states
    stay in the table but are not visible; a later branch of the same name does not show them. If a
    call was killed and has left only the tag of a branch, the tag is removed; if the table of
    branches may be the wrong one, because it has only other branches, that is left to `drop_tag`.
#}
{% macro drop_branch(
    table, writes, branches, branch, author=none, reason=none, dry_run=false, convention=none,
    key=none
) %}
    {% set call = dbt_history._branch_call(
        table, branches, branch, 'drop_branch', convention, key, author, reason,
    ) %}
    {% set has_tag_only = dbt_history._has_tag_only(call) %}
    {% if call.epoch is none and not has_tag_only %}
        {% do call.problems.append(
            'there is no branch ' ~ branch
                ~ (', but its tag: name its table of branches, or if a killed call has left the tag'
                    ~ ' drop it (drop_tag, tag: branch:' ~ branch ~ ')'
                    if dbt_history._branch_tags(call) else '')
        ) %}
    {% endif %}
    {% for epoch in call.epochs if epoch.until is none and epoch.parent == branch %}
        {% do call.problems.append('branch ' ~ epoch.branch ~ ' is based on it') %}
    {% endfor %}
    {% do dbt_history._refuse_branch(call, 'the branch cannot be dropped') %}
    {% if not dry_run %}
        {% do dbt_history._add_branch_fact(
            call, 'drop', dbt_history._head_of_log(writes, call.table.relation).txn, writes=writes,
        ) if not has_tag_only %}
        {% do dbt_history._remove_tag(call.table, 'branch:' ~ branch) %}
    {% endif %}
    {% do log(
        'dbt_history: '
            ~ ('there is no branch ' ~ branch ~ '; its tag' if has_tag_only
                else 'branch ' ~ branch)
            ~ (' would be ' if dry_run else ' is ') ~ ('removed' if has_tag_only else 'dropped'),
        info=true,
    ) %}
{% endmacro %}
