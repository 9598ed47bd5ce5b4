{#
    Exactly once on Iceberg. A MERGE there checks for conflicts only among the files that it read,
    which does not see a batch that had no effect, or whose number alone matters. So a batch is
    merged into a branch of the run's own, made from the very snapshot whose past was looked at, and
    the branch becomes `main` only if `main` is still there (a compare-and-swap):

        main     s4 ------------------------- s5        fast_forward: main moves from s4 to s5, or
                 not at all
        branch   s4 --- MERGE, with record --- s5

    Where another run was first, the branch begins anew at the newer snapshot, if the batch is not
    taken by then; unless somebody rolled the table back or replaced it (`log.reset`): then all is
    planned again.
#}
{% macro _iceberg_commit_once(target, statement, plan, log, caller_name) %}
    {% set state = namespace(failed='conflict') %}
    {% for attempt in range(6) if state.failed == 'conflict' %}
        {% if attempt and plan.batch is not none %}
            {% do log.update({'reset': dbt_history._iceberg_reset_since(target, log)}) %}
        {% endif %}
        {% if (attempt or log.snapshot is none) and not log.get('reset') %}
            {% do dbt_history._look_again(target, log) %}
        {% endif %}
        {% if log.get('reset') %}
            {% set state.failed = 'reset' %}
        {% elif attempt and plan.batch is not none and log.last_batch is not none
            and log.last_batch >= plan.batch %}
            {% set state.failed = none %}
        {% else %}
            {% do dbt_history._branch_off(target, log) %}
            {% set record = dict(dbt_history._commit_record(plan, log), parent=log.snapshot) %}
            {% set state.failed = dbt_history._guarded_statement(
                statement, {dbt_history._snapshot_property(): dbt_history._record_text(record)}, {},
            ) %}
            {% if state.failed is none %}
                {% set state.failed = dbt_history._publish(target, log, record, caller_name) %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% do return(state.failed) %}
{% endmacro %}


{#
    What happened to the table since `log` was read, as text; none if its snapshot is still in the
    past of `main` and nobody replaced all rows.
#}
{% macro _iceberg_reset_since(target, log) %}
    {% set state = namespace(is_there=false, reset=none) %}
    {% set chain = dbt_history._snapshot_chain(target) %}
    {% for entry in chain.entries if not state.is_there %}
        {% set state.is_there = entry.version == log.snapshot %}
        {% if not state.is_there and entry.record is none and entry.replaces_all %}
            {% set state.reset = entry.operation ~ ', snapshot ' ~ entry.version %}
        {% endif %}
    {% endfor %}
    {% do return(
        state.reset if state.is_there
            else 'rolled back or replaced: snapshot ' ~ log.snapshot ~ ' is not in its past'
    ) %}
{% endmacro %}


{# The log anew. A table without a snapshot gets an empty one: there must be one to begin at. #}
{% macro _look_again(target, log) %}
    {% set found = dbt_history._iceberg_commit_log(target) %}
    {% if found.snapshot is none %}
        {% do run_query(dbt_history._empty_commit_sql(target)) %}
        {% set found = dbt_history._iceberg_commit_log(target) %}
    {% endif %}
    {% do log.update(found) %}
{% endmacro %}


{# A branch that nobody else writes; of those that killed runs left see `_drop_left_branches`. #}
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
    Returns none, or 'conflict' where another run was first. If the other one publishes between the
    look and the call, Iceberg refuses the call. No script catches that, and dbt cannot go on after
    it, but it lets the message be ours.
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
            ~ ' was not applied: the table did not take it',
        got='an error of Iceberg (in dbt\'s log), most often because another run published at the'
            ~ ' same moment',
        expected='no snapshot after ' ~ log.snapshot ~ ', which the batch was merged on',
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
    The snapshot that a branch points to; as text on the way, because a number that long loses
    digits.
#}
{% macro _head_of(target, branch='main') %}
    {% set rows = run_query(
        "select concat('s', snapshot_id) from " ~ dbt_history._quoted_relation(target)
            ~ '.refs where name = ' ~ dbt_history._string_literal(branch)
    ).rows %}
    {% do return(rows[0][0][1:] | int if rows | length else none) %}
{% endmacro %}


{# Of this run and model, with the second in which the run began. #}
{% macro _branch_name() %}
    {% set since = run_started_at.timestamp() | int %}
    {% do return('dbt_history_' ~ since ~ '_' ~ local_md5(model.unique_id ~ invocation_id)[:12]) %}
{% endmacro %}


{# The branch as a relation: `schema`.`table`.`branch_…`, which reads and writes like a table. #}
{% macro _iceberg_writing_place(target) %}
    {% do return(target.incorporate(path={
        'schema': target.schema ~ '.' ~ target.identifier,
        'identifier': 'branch_' ~ dbt_history._branch_name(),
    })) %}
{% endmacro %}


{# The branch goes, and the table keeps the number where expired snapshots do not take it along. #}
{% macro _iceberg_finish_writes(target, log) %}
    {% if 'branch_at' in log %}
        {% do run_query(
            'alter table ' ~ dbt_history._quoted_relation(target) ~ ' drop branch if exists '
                ~ dbt_history._branch_name()
        ) %}
    {% endif %}
    {% if log.get('has_written') %}
        {% do dbt_history._keep_last_batch(target) %}
        {% do dbt_history._drop_left_branches(target) %}
    {% endif %}
{% endmacro %}


{#
    What runs left that were killed: their branches, a day after they began. A younger one may
    belong to a run that is still going on. If an older one does, it has lost already, because
    `main` has moved since: `_publish` refuses what it merges.
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


{% macro _keep_last_batch(relation) %}
    {% set chain = dbt_history._snapshot_chain(relation, 30) %}
    {% for entry in chain.entries
        if entry.record is not none and entry.record.get('batch') is not none %}
        {% if loop.first %}
            {% set kept = {
                'batch': entry.record.batch, 'micros': entry.micros,
                'model': entry.record.get('model'),
            } %}
            {% for name in ['watermarks', 'about', 'key'] if entry.record.get(name) %}
                {% do kept.update({name: entry.record[name]}) %}
            {% endfor %}
            {% do run_query(
                'alter table ' ~ dbt_history._quoted_relation(relation)
                    ~ " set tblproperties ('dbt_history.last_batch' = "
                ~ dbt_history._string_literal(tojson(kept)) ~ ')'
            ) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{#
    Merge-on-read: a batch that closes one version of a large file does not write the file again.
    Old metadata files, one a commit, go by themselves.
#}
{% macro _iceberg_properties(is_log) %}
    {% set properties = {
        'format-version': '2', 'write.metadata.delete-after-commit.enabled': 'true',
    } %}
    {% for operation in ['merge', 'update', 'delete'] %}
        {% do properties.update({'write.' ~ operation ~ '.mode': 'merge-on-read'}) %}
    {% endfor %}
    {% do return(properties) %}
{% endmacro %}
