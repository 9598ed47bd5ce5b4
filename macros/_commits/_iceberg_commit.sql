{#
    Exactly once on Iceberg. A MERGE checks for conflicts only among the files that it read, which
    does not detect a concurrent batch that changed none of them, for example one without effect. So
    a batch is merged into a branch of the run, created at the snapshot whose log was read, and
    `main` is moved to the branch only if it is still at that snapshot (compare-and-swap):

        main     s4 ------------------------- s5        fast_forward: main moves from s4 to s5, or
                 not at all
        branch   s4 --- MERGE, with record --- s5

    If another run was first and has not applied the batch, the branch is created again at the newer
    snapshot. If the table was rolled back or replaced, or an operation hides the rows
    (`log.reset`), the batch is planned again.

    Once the log was read again, it may contain later batches of this run's plan, too:

        this run     plans 1 to 4   merges 1          reads the log again: 1 to 4 are applied
        other run                   publishes 1 to 4
#}
{% macro _iceberg_commit_once(target, statement, plan, log, before, caller_name) %}
    {% set state = namespace(failed='conflict') %}
    {% for attempt in range(6) if state.failed == 'conflict' %}
        {% if attempt and plan.batch is not none %}
            {% do log.update({'reset': dbt_history._iceberg_reset_since(target, log, plan)}) %}
        {% endif %}
        {% set is_overtaken = plan.get('has_no_number')
            and dbt_history._is_overtaken(target, log) %}
        {% if (attempt or log.snapshot is none) and not log.get('reset') %}
            {% set last, begun = log.last_batch, log.get('begun') %}
            {% do dbt_history._look_again(target, log) %}
            {# What came after `_iceberg_reset_since`. #}
            {% if plan.batch is not none and dbt_history._is_set_back(last, log) %}
                {% do log.update({'reset': 'rolled back to before batch ' ~ last}) %}
            {% elif plan.get('watermarks') and log.begun not in [none, begun] %}
                {% do log.update({'reset': 'a rewind'}) %}
            {% endif %}
        {% endif %}
        {% if is_overtaken %}
            {% set state.failed = 'overtaken' %}
        {% elif log.get('reset') %}
            {% set state.failed = 'reset' %}
        {% elif log.get('is_read_again') and plan.batch is not none
            and log.last_batch is not none and log.last_batch >= plan.batch %}
            {% set state.failed = none %}
        {% else %}
            {% do dbt_history._branch_off(target, log) %}
            {% set record = dict(dbt_history._commit_record(plan, log), parent=log.snapshot) %}
            {% set state.failed = dbt_history._guarded_statement(
                statement,
                dict(
                    dbt_history._settings_of_rules(plan),
                    **{dbt_history._snapshot_property(): dbt_history._record_text(record)},
                ),
                before,
            ) %}
            {% if state.failed is none %}
                {% set state.failed = dbt_history._publish(target, log, record, caller_name) %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% do return(state.failed) %}
{% endmacro %}


{#
    How the table was reset since `log` was read, as text; none if the snapshot of `log` is still an
    ancestor of `main`, no other writer replaced all rows, and no operation hides the rows of
    `plan`.
#}
{% macro _iceberg_reset_since(target, log, plan) %}
    {% set state = namespace(is_there=false, reset=none) %}
    {% set chain = dbt_history._snapshot_chain(target) %}
    {% for entry in chain.entries if not state.is_there %}
        {% set state.is_there = entry.version == log.snapshot %}
        {% if not state.is_there and entry.record is none and entry.replaces_all %}
            {% set state.reset = entry.operation ~ ', snapshot ' ~ entry.version %}
        {% elif not state.is_there and dbt_history._hides_changes(entry, plan) %}
            {% set state.reset = dbt_history._operation_of(entry) %}
        {% endif %}
    {% endfor %}
    {% do return(
        state.reset if state.is_there
            else 'rolled back or replaced: snapshot ' ~ log.snapshot ~ ' is not in its past'
    ) %}
{% endmacro %}


{#
    Reads the log again: from now on it may contain batches of other runs (`is_read_again`). A table
    without a snapshot gets an empty one, to create the branch at. What was suspended or resumed
    since the run planned is repeated in its commits: they come after it.
#}
{% macro _look_again(target, log) %}
    {% set found = dbt_history._iceberg_commit_log(target) %}
    {% if found.snapshot is none %}
        {% do run_query(dbt_history._empty_commit_sql(target)) %}
        {% set found = dbt_history._iceberg_commit_log(target) %}
    {% endif %}
    {% do found.update({'unseen_control': found.control}) if found.control != log.control %}
    {% do log.update(dict(found, is_read_again=true)) %}
{% endmacro %}


{# Creates the run's branch. `_drop_left_branches` drops those of killed runs. #}
{% macro _branch_off(target, log) %}
    {% if log.get('branch_at') != log.snapshot %}
        {% do run_query(
            'alter table ' ~ dbt_history._quoted_relation(target) ~ ' create or replace branch '
                ~ dbt_history._branch_name()
            ~ ' as of version ' ~ log.snapshot ~ ' retain 1 days'
        ) %}
        {% do log.update({'branch_at': log.snapshot}) %}
    {% endif %}
{% endmacro %}


{#
    Moves `main` to the branch. Returns none, or 'conflict' if another run was first. If the other
    run publishes between the check and the call, Iceberg refuses the call. A SQL script cannot
    catch this error, so the run fails, with a message of this package.
#}
{% macro _publish(target, log, record, caller_name) %}
    {% set name = dbt_history._quoted_relation(target) %}
    {% do log.update({'branch_at': none}) %}
    {% if dbt_history._head_of(target) != log.snapshot %}
        {% do return('conflict') %}
    {% endif %}
    {% set message = dbt_history._message(
        caller_name,
        (('batch ' ~ record.batch) if record.batch is not none else 'the batch without a number')
            ~ ' was not applied: the table refused it',
        got='an error of Iceberg (in dbt\'s log), usually because another run published at the'
            ~ ' same time',
        expected='no snapshot after ' ~ log.snapshot ~ ', into which the batch was merged',
        node=model.unique_id,
        way_out='run the model again; batches that were published before, by this run or another,'
            ~ ' are not applied twice',
    ) %}
    {% do try_or_compiler_error(
        message, run_query,
        'call system.fast_forward(' ~ dbt_history._string_literal(name) ~ ", 'main', "
            ~ dbt_history._string_literal(dbt_history._branch_name()) ~ ')'
    ) %}
    {% set written = dbt_history._head_of(target, dbt_history._branch_name()) %}
    {% do log.update({
        'snapshot': written, 'branch_at': written, 'is_empty': false, 'is_known': true,
        'has_written': true,
        'last_batch': record.batch if record.batch is not none else log.last_batch,
        'watermarks': record.get('watermarks', {}), 'about': record.get('about', {}),
    }) %}
    {% do return(none) %}
{% endmacro %}


{#
    The snapshot of a branch. The query returns it as text, because the result would round so large
    a number.
#}
{% macro _head_of(target, branch='main') %}
    {% set rows = run_query(
        "select concat('s', snapshot_id) from " ~ dbt_history._quoted_relation(target)
            ~ '.refs where name = ' ~ dbt_history._string_literal(branch)
    ).rows %}
    {% do return(rows[0][0][1:] | int if rows | length else none) %}
{% endmacro %}


{# The name contains the second in which the run began, and a hash of the model and the run. #}
{% macro _branch_name() %}
    {% set since = run_started_at.timestamp() | int %}
    {% do return('dbt_history_' ~ since ~ '_' ~ local_md5(model.unique_id ~ invocation_id)[:12]) %}
{% endmacro %}


{# The branch as a relation: `schema`.`table`.`branch_…`, readable and writable like a table. #}
{% macro _iceberg_writing_place(target) %}
    {% do return(target.incorporate(path={
        'schema': target.schema ~ '.' ~ target.identifier,
        'identifier': 'branch_' ~ dbt_history._branch_name(),
    })) %}
{% endmacro %}


{#
    Drops the branch, and keeps the records of the batches for when their snapshots have expired,
    also those of a run that was killed before it could.
#}
{% macro _iceberg_finish_writes(target, log) %}
    {% if 'branch_at' in log %}
        {% do run_query(
            'alter table ' ~ dbt_history._quoted_relation(target) ~ ' drop branch if exists '
                ~ dbt_history._branch_name()
        ) %}
    {% endif %}
    {% if log.get('has_written') %}
        {% do dbt_history._keep_records(target) %}
        {% do dbt_history._drop_left_branches(target) %}
    {% elif log.last_batch is not none and log.last_batch != (
        dbt_history._kept_records(target) | selectattr('batch', 'defined') | map(attribute='batch')
        | first
    ) %}
        {% do dbt_history._keep_records(target) %}
    {% endif %}
{% endmacro %}


{#
    Drops the branches of killed runs a day after the runs began. A younger branch may belong to a
    run in progress. If the run of an older branch is still in progress, it cannot publish anyway:
    `main` has moved since.
#}
{% macro _drop_left_branches(target) %}
    {% set name = dbt_history._quoted_relation(target) %}
    {% set sql %}
        select name
        from {{ name }}.refs
        where
            name rlike '^dbt_history_[0-9]+_'
            and try_cast(
                split_part(name, '_', 3) as bigint
            ) < unix_seconds(current_timestamp()) - 86400
    {% endset %}
    {% for row in run_query(sql).rows %}
        {% do run_query('alter table ' ~ name ~ ' drop branch if exists ' ~ row[0]) %}
    {% endfor %}
{% endmacro %}


{#
    Merge-on-read: closing one version in a large file does not rewrite the file. Iceberg deletes
    old metadata files (one per commit) by itself.
#}
{% macro _iceberg_properties() %}
    {% set properties = {
        'format-version': '2', 'write.metadata.delete-after-commit.enabled': 'true',
    } %}
    {% for operation in ['merge', 'update', 'delete'] %}
        {% do properties.update({'write.' ~ operation ~ '.mode': 'merge-on-read'}) %}
    {% endfor %}
    {% do return(properties) %}
{% endmacro %}
