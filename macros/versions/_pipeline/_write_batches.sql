{#
    The pipeline of a version table: evaluates the SELECT once, checks everything, then commits the
    batches. Returns the counts of the run: {'batches', 'added', 'closed', 'removed', 'skipped',
    'replayed'}, and for a suspended table 'suspended' and 'held', the batches that it does not
    take.
#}
{% macro _write_batches(target, existing, select_sql, settings, full_refresh, caller_name) %}
    {% do return(dbt_history._write_planned(
        dbt_history._plan_and_write_batches, target, existing, select_sql, settings, full_refresh,
        caller_name
    )) %}
{% endmacro %}


{#
    One attempt: returns the counts, or `reset` (`_write_planned`). The order of the steps protects
    against races. In each of them a refusal drops what was staged:

        stage       the rows of the SELECT become a cache or a table; its columns are checked
        log         the log of an existing table: the last batch, and the version that the run has
                    seen, by which each commit finds a reset
        plan        the pending batches; their rows are checked before a table is created, and the
                    first commit before a table is replaced
        create      a new table, empty. Then its log: another run may have made it
        outdated    whether the table was changed after the SELECT was compiled
        columns     the key is checked, an adopted table too; columns are added
        commits     one plan each; without a pending batch the watermarks, or the number
#}
{% macro _plan_and_write_batches(
    target, existing, select_sql, settings, full_refresh, caller_name
) %}
    {% set before = dbt_history._settings_before_commits() %}
    {% set settings = dbt_history._with_event_options(settings, select_sql, caller_name) %}
    {% set captured = dbt_history._captured_sources(select_sql) %}
    {% set settings = dict(
        settings, partly_said=(captured or {}).get('partly_said', []) | map('lower') | list,
    ) %}
    {% set staged = dbt_history._stage_batches(select_sql, target, before) %}
    {% set is_new = existing is none or full_refresh %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_staged_columns(staged, settings)
            + dbt_history._reserved_columns(staged, target),
        staged, caller_name
    ) %}

    {% set columns = dbt_history._new_columns(staged, settings) if is_new
        else dbt_history._table_columns(existing) %}
    {% if not is_new %}
        {% do dbt_history._refuse_columns(
            dbt_history._check_table_columns(staged, columns, settings), staged, caller_name,
        ) %}
    {% endif %}
    {% set run = dbt_history._columns_of_run(
        staged, columns,
        adds=not is_new and settings.on_schema_change == 'append_new_columns',
    ) %}
    {% set columns = run.columns %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_void_columns(columns if is_new else run.added)
            + (dbt_history._check_partitions(columns, target) if is_new else [])
            + dbt_history._check_tracked_columns(columns, settings),
        staged, caller_name,
    ) %}

    {% set settings = dict(
        settings,
        null_if_empty=dbt_history._null_if_empty(columns, target),
        ignored=dbt_history._added_columns(staged, columns) | map(attribute='name') | map('lower')
            | list,
    ) %}

    {# If the rows depend on the last batch, the log is read after they were evaluated. #}
    {% set read = model.pop('_last_batch_log', none) %}
    {% set log = none if is_new else dbt_history._log_to_write(
        existing, caller_name, none if dbt_history._notes('batch', select_sql) else read,
    ) %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_source_names(captured, staged, select_sql)
            + dbt_history._check_unstored_columns(captured, staged, settings),
        staged, caller_name
    ) %}
    {% set last_batch = log.last_batch if log else none %}
    {% set pending = dbt_history._pending_batches(
        dbt_history._plan_batches(staged, columns, settings, last_batch), last_batch, settings,
        staged, caller_name, captured
    ) %}
    {% set has_numbers = dbt_history._has_numbers(pending, staged, captured) %}
    {% if has_numbers and pending.batches and dbt_history._has_new_columns(select_sql, staged) %}
        {% do return(dbt_history._to_plan_again(
            staged, 'by a new column of its SELECT', is_unmade=is_new,
        )) %}
    {% endif %}
    {% do dbt_history._refuse_other_owner(
        log or {}, settings, has_numbers, staged, caller_name,
    ) %}
    {% do dbt_history._take_over_marks(
        target, (log or {}).get('owner'), settings.get('continues', []),
    ) %}
    {% set number = dbt_history._number_of_batch(select_sql, log) %}
    {# `history` has refused a sample that is not true, and of a true one no other rows count. #}
    {% if (caller_name != 'history' or dbt_history._hiding_option() == '--empty')
        and dbt_history._commits_nothing(
            has_numbers or caller_name == 'history', staged, caller_name,
        ) %}
        {% set pending, captured, number = {'batches': [], 'replayed': 0}, none, none %}
    {% endif %}
    {% if dbt_history._is_suspended(log) and pending.batches %}
        {% do dbt_history._drop_staged(staged) %}
        {% do return(dbt_history._held_batches(pending, target)) %}
    {% endif %}
    {% do dbt_history._refuse_bad_rows(staged, pending.batches, columns, settings, caller_name) %}
    {% if not is_new and pending.batches %}
        {% do staged.update({'said': dbt_history._said_columns(captured, staged, columns)}) %}
        {% do dbt_history._refuse_lost_fields(
            existing, staged, columns, settings, caller_name,
        ) if staged.said %}
    {% endif %}

    {% if is_new and existing is not none %}
        {% do dbt_history._refuse_first_commit({
            'target': target, 'staged': staged, 'columns': columns, 'is_replaced': true,
            'settings': dict(settings, has_repeats=false), 'caller_name': caller_name,
        }, pending.batches) %}
    {% endif %}
    {% if is_new %}
        {% set columns = dbt_history._create_history_table(
            target, columns, settings, replace=existing is not none,
        ) %}
        {% set log = dbt_history._log_to_write(target, caller_name) %}
        {% do dbt_history._refuse_other_owner(log, settings, has_numbers, staged, caller_name) %}
        {# A table of a killed run that was registered may have other columns than the new one. #}
        {% do dbt_history._refuse_columns(
            dbt_history._check_table_columns(staged, columns, settings), staged, caller_name,
        ) %}
        {% set run = dbt_history._columns_of_run(staged, columns) %}
        {% set columns = run.columns %}
        {% set pending = dbt_history._not_taken(pending, log.last_batch) %}
    {% endif %}
    {% set outdated = dbt_history._outdated(
        captured, log, dbt_history._is_compiled_before_batch(select_sql, log), 'a batch',
    ) %}
    {% if outdated %}
        {% do return(dbt_history._to_plan_again(staged, outdated)) %}
    {% endif %}
    {% do dbt_history._refuse_other_key(log.key, settings.key, staged, caller_name) %}
    {% if not is_new and log.last_batch is none and not log.is_known
        and (pending.batches or number is not none) %}
        {% do dbt_history._refuse_adoption(target, settings, staged, caller_name) %}
    {% endif %}
    {% if run.added and pending.batches %}
        {% do dbt_history._append_columns(target, run.added, caller_name) %}
    {% endif %}
    {% if pending.batches %}
        {% do dbt_history._extend_columns(target, run.extended, caller_name) %}
        {% set settings = dbt_history._with_repeats(settings, target) %}
    {% elif target.is_iceberg %}
        {% do dbt_history._record_masked_columns(settings, target) %}
    {% endif %}

    {% set total = {
        'batches': 0, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0,
        'replayed': pending.replayed, 'suspended': dbt_history._is_suspended(log),
    } %}
    {% set batch = {
        'target': target, 'staged': staged, 'columns': columns, 'settings': settings, 'log': log,
        'before': before, 'caller_name': caller_name,
        'begins_empty': is_new and log.is_empty,
        'former': log.epoch - 1
            if is_new and existing is not none and not target.is_iceberg else none,
    } %}
    {% for plan in dbt_history._plan_commits(staged, columns, settings, pending.batches)
        if not total.get('reset') %}
        {% do dbt_history._write_plan(dict(batch, plan=plan, rendered={}), total) %}
        {% do log.update({'is_empty': false}) %}
    {% endfor %}
    {% if captured is not none and not pending.batches and not dbt_history._is_suspended(log) %}
        {% do dbt_history._commit_watermarks(target, staged, captured, log, before, caller_name) %}
    {% elif number is not none and not pending.batches and not dbt_history._is_suspended(log) %}
        {% do dbt_history._commit_number(
            target, staged, number, settings, log, before, caller_name,
        ) %}
    {% endif %}
    {% do dbt_history._finish_writes(target, log) %}
    {% do dbt_history._drop_staged(staged) %}
    {% do return(total) %}
{% endmacro %}


{#
    The counts of a run of a suspended table: all pending batches stay pending, so the first run
    after `resume_history` applies them, in order.

        batches   1    2    3    4          5
        table     1    2  | suspended     | 3 4 5
                          ^ suspend       ^ resume
#}
{% macro _held_batches(pending, target) %}
    {% set held = pending.batches | length %}
    {% do log(
        'dbt_history: ' ~ target.identifier ~ ' is suspended: ' ~ held
            ~ (' batch is' if held == 1 else ' batches are') ~ ' held back until resume_history',
        info=true,
    ) %}
    {% do return({
        'batches': 0, 'added': 0, 'closed': 0, 'removed': 0, 'skipped': 0,
        'replayed': pending.replayed, 'suspended': true, 'held': held,
    }) %}
{% endmacro %}


{#
    Checks a plan and applies it; adds its counts to `total`. If a check or the table refuses a plan
    of several batches, the batches are applied one by one instead: those before the refused batch
    are committed, and the message names the refused one.
#}
{% macro _write_plan(batch, total) %}
    {% set plan = batch.plan %}
    {% set is_refused = false %}
    {% if plan.parts %}
        {% set is_refused = dbt_history._may_delete_too_many(batch)
            or dbt_history._count_without_required_base(batch) %}
    {% else %}
        {% do dbt_history._refuse_earlier_version(batch) %}
        {% do dbt_history._refuse_mass_deletion(batch) %}
        {% do dbt_history._refuse_rows_without_base(batch) %}
    {% endif %}
    {% set counts = none if is_refused else dbt_history._apply_batch(batch) %}
    {% if counts is none %}
        {% for part in plan.parts if not total.get('reset') %}
            {% do dbt_history._write_plan(dict(batch, plan=part, rendered={}), total) %}
        {% endfor %}
        {% do return(none) %}
    {% endif %}
    {% set number = plan.parts | length or 1 %}
    {% do total.update(
        {'batches': total.batches + number} if counts.applied
            else {'replayed': total.replayed + number}
    ) %}
    {% do total.update({'reset': counts.get('reset')}) %}
    {% for name in ['added', 'closed', 'removed', 'skipped'] %}
        {% do total.update({name: total[name] + counts[name]}) %}
    {% endfor %}
    {% do dbt_history._log_batch(plan, counts) if not total.reset %}
{% endmacro %}


{# The batches after the last applied one, with their bound; the others count as applied. #}
{% macro _pending_batches(batches, last_batch, settings, staged, caller_name, captured) %}
    {% set convention = settings.convention %}
    {% set numbers = batches | map(attribute='batch', default=none) | list %}
    {% if none in numbers and numbers | length > 1 %}
        {% do dbt_history._refuse_columns(
            ['column _batch is NULL in some rows: give every row its number, or none'], staged,
            caller_name,
        ) %}
    {% endif %}
    {% set pending = [] %}
    {% for batch in (batches | sort(attribute='batch') if batches | length > 1 else batches) %}
        {% do batch.update({'batch': batch.get('batch'), 'key': settings.key}) %}
        {% if batch.get('min_effective_at') is not none %}
            {% do batch.update({
                'bound': dbt_history._axis_value(
                    (batch.min_effective_at | int) - dbt_history._gap_units(convention), convention,
                )
            }) %}
        {% endif %}
        {% do pending.append(batch) %}
    {% endfor %}
    {% do dbt_history._number_captured(pending, captured) %}
    {% do return(dbt_history._not_taken({'batches': pending, 'replayed': 0}, last_batch)) %}
{% endmacro %}


{# Whether the SELECT numbers its batches, even if it returns none. #}
{% macro _has_numbers(pending, staged, captured) %}
    {% do return(
        captured is not none
            or (
                '_batch' in staged.names
                    and not (pending.batches and pending.batches[0].batch is none)
            )
    ) %}
{% endmacro %}


{# The pending batches without those at or below the last applied number, which are replayed. #}
{% macro _not_taken(pending, last_batch) %}
    {% set rest = [] %}
    {% for batch in pending.batches
        if batch.batch is none or last_batch is none or batch.batch > last_batch %}
        {% do rest.append(batch) %}
    {% endfor %}
    {% do return({
        'batches': rest, 'replayed': pending.replayed + pending.batches | length - rest | length,
    }) %}
{% endmacro %}


{% macro _log_batch(plan, counts) %}
    {% set name = dbt_history._plan_name(plan) %}
    {% if not counts.applied %}
        {% do log(
            'dbt_history: ' ~ name ~ ' of ' ~ model.name ~ ' was applied by another run', info=true,
        ) %}
    {% else %}
        {% do log(
            'dbt_history: ' ~ name ~ ' of ' ~ model.name ~ ': ' ~ counts.added ~ ' added, '
                ~ counts.closed ~ ' closed, '
            ~ counts.removed ~ ' removed, ' ~ counts.skipped ~ ' skipped', info=counts.skipped > 0
        ) %}
    {% endif %}
{% endmacro %}


{% macro _result_message(result) %}
    {%- set batches = result.batches ~ (' batch' if result.batches == 1 else ' batches')
        if result.batches else 'suspended' if result.get('suspended') else 'no new batch' -%}
    {%- do return(
        batches ~ ': ' ~ result.added ~ ' added, ' ~ result.closed ~ ' closed, ' ~ result.removed
            ~ ' removed, '
        ~ result.skipped ~ ' skipped, ' ~ result.replayed ~ ' replayed'
            ~ (', ' ~ result.held ~ ' held back' if result.get('held') else '')
    ) -%}
{% endmacro %}
