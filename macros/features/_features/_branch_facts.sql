{#
    Adds a fact to the table of branches, which is created if needed. The statement reads the table
    that it writes, and writes only if the number of facts is unchanged: of two concurrent ones, one
    fails. With `writes` it writes only if `since` is still the end of that log: a run may have
    applied later writes of the branch without the fact.

        log     41       42             43
                since    other writer
        run                     42 applied on the base before the fact
        fact                                      after 41: 42 would have the new base
#}
{% macro _add_branch_fact(call, kind, since, parent=none, at=none, writes=none) %}
    {% set name = dbt_history._table_name(call.branches) %}
    {% set create %}
        create table if not exists {{ name }} (
            `fact` bigint not null comment 'Number of the fact, 1, 2, 3 and so on',
            `kind` string not null comment 'fork, rebase or drop',
            `branch` string not null,
            `parent` string comment 'The branch that it was forked from',
            `at` bigint comment 'The transaction of the parent that the branch is based on',
            `since` bigint not null comment 'The last transaction before the fact takes effect',
            `author` string,
            `reason` string,
            `recorded_at` timestamp not null,
            `invocation_id` string
        )
        using delta
        comment 'One row per fork, rebase or drop of a branch of feature states (dbt_history)'
    {% endset %}
    {% do dbt_history._create_own_table(dbt_history._relation_of(call.branches), create) %}
    {% set insert %}
        insert into {{ name }}
        select
            {{ call.facts | length + 1 }}L,
            {{ dbt_history._string_literal(kind) }},
            {{ dbt_history._string_literal(call.branch) }},
            {{ dbt_history._string_literal(parent) if parent else 'cast(null as string)' }},
            {{ at ~ 'L' if at is not none else 'cast(null as bigint)' }},
            {{ since }}L,
            {{ dbt_history._string_literal(call.author) if call.author else 'current_user()' }},
            {{ dbt_history._string_literal(call.reason) if call.reason
                else 'cast(null as string)' }},
            current_timestamp(),
            {{ dbt_history._string_literal(invocation_id) }}
        from (select count(*) as facts from {{ name }}) as counted
        where facts = {{ call.facts | length }}
            {%- if writes is not none %}
            and {{ dbt_history._end_of_writes(writes) }} = {{ since }}L
            {%- endif %}
    {% endset %}
    {% set failed = dbt_history._guarded_insert(insert) %}
    {% set written = run_query(
        'select count(*) from ' ~ name ~ ' where `fact` = ' ~ (call.facts | length + 1)
            ~ 'L and `invocation_id` = ' ~ dbt_history._string_literal(invocation_id)
        ~ ' and `branch` = ' ~ dbt_history._string_literal(call.branch)
    ).rows[0][0] | int if failed is none else 0 %}
    {% set is_moved = not written and writes is not none
        and run_query('select ' ~ dbt_history._end_of_writes(writes)).rows[0][0] | int != since %}
    {% if is_moved %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            call.caller_name, 'the log was written by another one at the same time',
            got='a transaction after ' ~ since, expected='the end of the log at ' ~ since,
            way_out='run the model of the states, then run it again',
        )) %}
    {% elif not written %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            call.caller_name, 'the branches were changed by another operation at the same time',
            got=failed or 'a new fact', way_out='run it again',
        )) %}
    {% endif %}
{% endmacro %}


{#
    The state that an operation on a branch works with: {'table', 'branches', 'branch', 'facts',
    'epochs', 'epoch', 'author', 'reason', 'problems'}; `epoch` is none if the branch does not exist
    or was dropped.
#}
{% macro _branch_call(table, branches, branch, caller_name, convention, key, author, reason) %}
    {% set tables = dbt_history._maintained(table, convention, key, caller_name) %}
    {% for found in tables if found.relation.is_iceberg %}
        {% do dbt_history._refuse_iceberg(
            found.relation, caller_name,
            'states, log and branches in Delta: of two operations at once it refuses one',
        ) %}
    {% endfor %}
    {% set facts = dbt_history._branch_facts(branches) %}
    {% set epochs = dbt_history._branch_epochs(facts) %}
    {% set problems = [] %}
    {% for found in tables if 'branch' not in found.key | map('lower') %}
        {% do problems.append(found.name ~ ': its key has no column branch') %}
    {% endfor %}
    {% if tables | length > 1 %}{% do problems.append('one table of states at a time') %}{% endif %}
    {% do return({
        'table': tables[0], 'branches': branches, 'branch': branch, 'facts': facts,
        'epochs': epochs,
        'epoch': dbt_history._present_epoch(epochs, branch), 'author': author, 'reason': reason,
        'problems': problems, 'caller_name': caller_name,
    }) %}
{% endmacro %}


{% macro _refuse_branch(call, about) %}
    {% if call.problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            call.caller_name, about ~ '; nothing was done',
            got='\n    ' ~ call.problems | join('\n    '),
        )) %}
    {% endif %}
{% endmacro %}


{#
    What a branch reads of others must not be cleaned: a tag of the states protects each point of
    its chain, because a parent may be rebased while the branch still reads the parent's earlier
    base. Returns the points.

        main     f1 at 1           f2 at 3
        draft        forked at 1   rebased to 3
        detail       forked from draft at 2           reads draft as of 2 and main as of 1
#}
{% macro _protect_bases(call, kind, parent, at, since) %}
    {% set points = dbt_history._bases(call, kind, parent, at, since) %}
    {% set bases = [] %}
    {% for point in points %}
        {% do bases.append(dict(call.table, instant=point | string)) %}
    {% endfor %}
    {% do dbt_history._add_tags(
        bases, 'branch:' ~ call.branch, call.problems, call.author, 'base of the branch',
    ) %}
    {% do dbt_history._refuse_branch(call, 'a base is cleaned or is being cleaned') %}
    {% do return(points) %}
{% endmacro %}


{# The points of the chain of the branch after such a fact. #}
{% macro _bases(call, kind, parent, at, since) %}
    {% set fact = {
        'kind': kind, 'branch': call.branch, 'parent': parent, 'at': at, 'since': since,
    } %}
    {% set epochs = dbt_history._branch_epochs(call.facts + [fact]) %}
    {% do return(
        dbt_history._present_epoch(epochs, call.branch).chain | map(attribute='at') | unique | list
    ) %}
{% endmacro %}


{# Only after the fact is written: until then the branch still reads its earlier bases. #}
{% macro _release_other_bases(call, points) %}
    {% for mark in dbt_history._branch_tags(call) if mark.number not in points %}
        {% do dbt_history._remove_tag(call.table, mark.name, mark.instant) %}
    {% endfor %}
{% endmacro %}


{#
    Whether a branch does not exist but its tag does, because a call was killed: `drop_branch` after
    the fact, or `create_branch` before it. If the table of branches does not exist, or has facts
    and none of this branch, it may be the wrong one, and the tag that of a branch that exists.
#}
{% macro _has_tag_only(call) %}
    {% set may_be_wrong = dbt_history._branches_relation(call.branches) is none
        or (call.facts and call.branch not in call.facts | map(attribute='branch')) %}
    {% do return(
        call.epoch is none and not may_be_wrong and dbt_history._branch_tags(call) | length > 0
    ) %}
{% endmacro %}


{# The points that the tag of the branch protects. #}
{% macro _branch_tags(call) %}
    {% do return(
        dbt_history._marks_of(call.table).tags
            | selectattr('name', 'equalto', 'branch:' ~ call.branch) | list
    ) %}
{% endmacro %}


{# The last transaction of a log, 0 if it is empty, as SQL. #}
{% macro _end_of_writes(writes) %}
    {%- do return(
        '(select coalesce(max(`txn`), 0) from ' ~ dbt_history._table_name(writes) ~ ')'
    ) -%}
{% endmacro %}


{#
    The last transaction of the log, the last one that the states have applied, and how many writes
    of the log they may lack, of those that `where` selects.
#}
{% macro _head_of_log(writes, states, where='true') %}
    {% set applied = dbt_history._last_applied(states, dbt_history._quoted_relation(states)) %}
    {% set row = run_query(
        'select coalesce(max(`txn`), 0), count_if(`txn` > ' ~ applied ~ 'L and (' ~ where
            ~ ')) from ' ~ dbt_history._table_name(writes)
    ).rows[0] %}
    {% do return({'txn': row[0] | int, 'applied': applied, 'ahead': row[1] | int}) %}
{% endmacro %}


{#
    The last transaction of the log that a table of states has applied, -1 if none: its last batch,
    because the last writes may have made no state; without a record that of its newest state.
#}
{% macro _last_applied(states, name) %}
    {% set newest = run_query('select coalesce(max(`txn`), -1) from ' ~ name).rows[0][0] | int %}
    {% set table = dbt_history._with_format(load_relation(dbt_history._relation_of(states))) %}
    {% set batch = none if table is none or table.is_view
        else dbt_history._commit_log(table, none).last_batch %}
    {% do return([newest, batch if batch is not none else -1] | max) %}
{% endmacro %}
