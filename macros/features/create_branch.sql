{#
    Forks a branch from `main` or from another branch at a transaction (default: the last of the
    log). Nothing is copied: the branch is a row in the table of branches, and shows the states of
    its parent at that point until it is written to.

        main     [ f v1 ----------------)[ f v2 ------
        fork at  |       ^
        branch           [ f v1 - - - - )[ f v2' -----    the predecessor of v2' is v1 of main

    dbt run-operation create_branch --args '{table: naksha_states, writes: naksha_writes,
        branches: naksha_branches, branch: draft}'

    Writes on it are rows of the log with its name in the column `branch`. Its base is protected
    from cleaning, like a tag. If the branch has a tag at another point, the call is refused, unless
    the table of branches shows that a killed call has left it: the tag may be that of a branch of
    another table of branches.
#}
{% macro create_branch(
    table, writes, branches, branch, parent='main', at=none, author=none, reason=none,
    dry_run=false, convention=none, key=none
) %}
    {% set call = dbt_history._branch_call(
        table, branches, branch, 'create_branch', convention, key, author, reason,
    ) %}
    {% set head = dbt_history._head_of_log(writes, call.table.relation) %}
    {% set point = head.txn if at is none
        else dbt_history._evaluated_point(at, call.table, 'create_branch') | int %}
    {% do dbt_history._check_name(branch, 'main', call.problems) %}
    {% if call.epoch is not none %}
        {% do call.problems.append('there is a branch ' ~ branch) %}
    {% elif not dbt_history._has_tag_only(call) %}
        {% set bases = dbt_history._bases(call, 'fork', parent, point, head.txn) %}
        {% for mark in dbt_history._branch_tags(call) if mark.number not in bases %}
            {% do call.problems.append(
                'there is no branch ' ~ branch ~ ', but its tag at ' ~ mark.instant
                    ~ ': name its table of branches, or if a killed call has left the tag, name its'
                    ~ ' point (at) or drop it (drop_tag, tag: branch:' ~ branch ~ ')'
            ) %}
        {% endfor %}
    {% endif %}
    {% if parent != 'main' and dbt_history._present_epoch(call.epochs, parent) is none %}
        {% do call.problems.append('there is no branch ' ~ parent) %}
    {% endif %}
    {% if not 0 <= point <= head.txn %}
        {% do call.problems.append(
            'transaction ' ~ point ~ ' is not in the log, which ends at ' ~ head.txn
        ) %}
    {% endif %}
    {% do dbt_history._check_above_retention_horizon(
        dict(call.table, instant=point | string), dbt_history._marks_of(call.table), call.problems,
    ) %}
    {% do dbt_history._refuse_branch(call, 'the branch cannot be made') %}
    {% if not dry_run %}
        {% set bases = dbt_history._protect_bases(call, 'fork', parent, point, head.txn) %}
        {% do dbt_history._add_branch_fact(call, 'fork', head.txn, parent, point) %}
        {% do dbt_history._release_other_bases(call, bases) %}
    {% endif %}
    {% do log(
        'dbt_history: branch ' ~ branch ~ (' would be' if dry_run else ' is') ~ ' forked from '
            ~ parent ~ ' at ' ~ point,
        info=true,
    ) %}
{% endmacro %}
