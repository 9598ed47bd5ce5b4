{#
    The pipeline of a log: check everything, make or alter the table, then one INSERT, one commit.
    Returns {'added', 'message'}.
#}
{% macro _append_rows(target, existing, select_sql, settings, full_refresh, caller_name) %}
    {% do return(dbt_history._write_planned(
        dbt_history._plan_and_append_rows, target, existing, select_sql, settings, full_refresh,
        caller_name
    )) %}
{% endmacro %}


{#
    One attempt: returns the result, or `reset` (`_write_planned`). The order of the steps protects
    against races. In each of them a refusal drops what was staged:

        stage       the SELECT becomes a view; its columns are checked
        create      a new table, empty. Its columns are checked: another run may have made it
        log         the table's log: the last number, and the version that the run has seen; with
                    the number of rows, which the INSERT of a numbered log compares with its own
        outdated    whether the table was changed after the SELECT was compiled
        plan        which rows are new, and their number; a table of another writer is checked
        columns     the starts are checked; columns are added and widened
        INSERT      one commit. Afterwards the log is read again: whose commit has the number
#}
{% macro _plan_and_append_rows(target, existing, select_sql, settings, full_refresh, caller_name) %}
    {% set before = dbt_history._settings_before_commits() %}
    {% set is_new = existing is none or full_refresh %}
    {% set captured = dbt_history._captured_sources(select_sql) %}
    {% set staged = dbt_history._staged_view(select_sql) %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_log_columns(staged, settings, captured)
            + dbt_history._check_unstored_columns(captured, staged, settings)
            + dbt_history._check_compared_columns(captured, staged)
            + dbt_history._reserved_columns(staged, target),
        staged, caller_name
    ) %}
    {% set stored_columns = [] if is_new else dbt_history._table_columns(existing) %}
    {% set change = dbt_history._log_change(staged, stored_columns, target.is_iceberg) %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_log_change(change, settings, is_new)
            + (
                dbt_history._check_partitions(
                    change.added + dbt_history._stamped_columns(staged, settings), target,
                ) if is_new else []
            ),
        staged, caller_name,
    ) %}

    {% set commits_nothing = dbt_history._commits_nothing(
        captured is not none or '_batch' in staged.names, staged, caller_name,
    ) %}
    {% set not_null = ((captured or {}).get('about') or {}).get('not_null', []) %}
    {% set is_numbered = '_batch' in staged.names %}
    {# Also before the table is made, which `on_schema_change: fail` would keep as it is. #}
    {% if is_new and is_numbered and dbt_history._has_new_columns(select_sql, staged) %}
        {% do return(dbt_history._to_plan_again(
            staged, 'by a new column of its SELECT', is_unmade=true,
        )) %}
    {% endif %}
    {% if is_new %}
        {% do dbt_history._create_log(
            target, dbt_history._with_not_null(
                change.added + dbt_history._stamped_columns(staged, settings), not_null,
            ),
            replace=existing is not none,
        ) %}
        {#
            A table taken over from a killed run, or made by another run at the same moment, may be
            another than the one asked for.
        #}
        {% set stored_columns = dbt_history._table_columns(target) %}
        {% set change = dbt_history._log_change(staged, stored_columns, target.is_iceberg) %}
        {% do dbt_history._refuse_columns(
            dbt_history._check_log_change(change, settings, false), staged, caller_name,
        ) %}
    {% endif %}
    {% do dbt_history._refuse_columns(
        dbt_history._check_start_column(target, settings), staged, caller_name,
    ) %}
    {% set read = dbt_history._log_and_rows(target, is_new, is_numbered, caller_name) %}
    {% set log, stored = read.log, read.rows %}
    {% do dbt_history._refuse_other_owner(log, settings, true, staged, caller_name) %}
    {% do dbt_history._take_over_marks(target, log.owner, settings.get('continues', [])) %}
    {% set outdated = dbt_history._outdated(
        captured, log, is_numbered and dbt_history._is_filtered_before_batch(log), 'rows',
    ) %}
    {% if outdated %}
        {% do return(dbt_history._to_plan_again(staged, outdated)) %}
    {% endif %}
    {% if not is_new and not target.is_iceberg and dbt_history._log_lock(target) == 'open' %}
        {% do dbt_history._close_log(dbt_history._quoted_relation(target)) %}
    {% endif %}
    {% if captured is none and '_batch' not in staged.names %}
        {% do dbt_history._refuse_other_key(log.key, settings.key, staged, caller_name) %}
    {% endif %}
    {% set settings = dict(
        settings, null_if_empty=dbt_history._null_if_empty(stored_columns, target),
    ) %}
    {% set plan = dict(
        dbt_history._plan_append(
            target, staged, dict(log, stored=stored), settings, captured,
            dbt_history._noted_batch(select_sql), caller_name,
        ),
        stored=stored, last_id=dbt_history._noted_last_id(select_sql),
    ) %}
    {% if plan.kind == 'batch' and plan.is_new
        and dbt_history._has_new_columns(select_sql, staged) %}
        {% do return(dbt_history._to_plan_again(staged, 'by a new column of its SELECT')) %}
    {% endif %}
    {% if not (is_new or commits_nothing or log.is_known or log.last_batch is not none)
        and (plan.is_new or plan.get('is_said')) %}
        {% do dbt_history._refuse_padded_log(target, staged, caller_name) %}
    {% endif %}
    {% if commits_nothing or not plan.is_new %}
        {% if plan.get('is_said') and not commits_nothing and not dbt_history._is_suspended(log) %}
            {% do dbt_history._record_said_number(target, staged, plan, log, before, caller_name) %}
        {% endif %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do return({
            'added': 0, 'message': 'applied by another run' if plan.is_taken else 'nothing new',
        }) %}
    {% elif dbt_history._is_suspended(log) and captured is not none %}
        {# Suspended since dbt compiled the model: a run after the resumption takes the changes. #}
        {% do dbt_history._log_suspended(target) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do return({'added': 0, 'message': 'nothing new'}) %}
    {% elif dbt_history._is_suspended(log) %}
        {% set held = dbt_history._count_held(target, staged, change.names, plan) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do return({'added': 0, 'message': held}) %}
    {% endif %}
    {% if settings.versions %}
        {% if dbt_history._is_stamped(staged, settings) %}
            {% do plan.update({
                'start': settings.versions.start,
                'stamp': dbt_history._stamp(target, settings, plan),
            }) %}
        {% endif %}
        {% if plan.get('stamp') in [none, '`_batch`'] %}
            {% do dbt_history._refuse_starts(
                target, staged, settings, plan,
                dbt_history._planned_rows(target, staged, change.names, plan), caller_name,
            ) %}
        {% endif %}
    {% endif %}
    {% do dbt_history._alter_log(
        target, change,
        dbt_history._nullable_now(target, stored_columns, log, (captured or {}).get('about', {})),
        caller_name,
    ) %}
    {% set failed = dbt_history._commit_once(
        target, dbt_history._append_sql(target, staged, change.names, plan), plan, log, before,
        caller_name,
    ) %}
    {% do dbt_history._finish_writes(target, log) %}
    {% if failed in ['refused', 'error'] and plan.kind == 'batch'
        and dbt_history._count_rows(target, 'true') != stored %}
        {% do model.update({'_counts_rows': true}) %}
        {% do return(dbt_history._to_plan_again(staged, 'by rows of another run')) %}
    {% endif %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._raise_failed_append(failed, staged, plan, caller_name) %}
    {% endif %}
    {% set own = dbt_history._own_commit(target, plan, log) %}
    {% set metrics = own.metrics %}
    {% do dbt_history._drop_staged(staged) %}
    {% if own.reset %}
        {% do return({'reset': own.reset}) %}
    {% endif %}
    {% if metrics is none and plan.kind in ['key', 'rows'] %}
        {# Another run took the number, perhaps with other rows. #}
        {% do return({'reset': 'by rows of another run'}) %}
    {% elif metrics is none %}
        {% do return({'added': 0, 'message': 'applied by another run'}) %}
    {% endif %}
    {% set added = metrics.get('numOutputRows', 0) | int %}
    {% set message = added ~ (' row' if added == 1 else ' rows') ~ ' appended' %}
    {% do dbt_history._log_append(message) %}
    {% if stored is not none and stored + added <= 10000 and not target.is_iceberg %}
        {% do dbt_history._advise_settings(before) %}
    {% endif %}
    {% do return({'added': added, 'message': message}) %}
{% endmacro %}


{#
    The message of a run of a suspended log. Its rows are appended after `resume_history`, if the
    SELECT still returns them.
#}
{% macro _count_held(target, staged, names, plan) %}
    {% set rows = dbt_history._planned_rows(target, staged, names, plan) %}
    {% set held = run_query('select count(*) from ' ~ rows ~ ' as held').rows[0][0] | int %}
    {% set message = 'suspended: ' ~ held ~ (' row' if held == 1 else ' rows') ~ ' held back' %}
    {% do log('dbt_history: ' ~ model.name ~ ': ' ~ message ~ ' until resume_history', info=true) %}
    {% do return(message) %}
{% endmacro %}


{# The new rows as a sub-query, without the check of another run that the INSERT makes. #}
{% macro _planned_rows(target, staged, names, plan) %}
    {%- do return(
        '(select * from ' ~ staged.view ~ ' where `_batch` > ' ~ plan['from'] ~ ')'
            if plan.kind == 'batch'
            else '(' ~ dbt_history._new_rows_sql(target, staged, names, plan) ~ ')'
    ) -%}
{% endmacro %}


{#
    {'log', 'rows'}: the table's log, and, for a numbered append, the number of rows that its INSERT
    has to find. The log that last_batch() has read is used again, if it gives the number of rows.
    Else they are counted before the log is read, so that the INSERT finds a commit between the two;
    also after an INSERT that found another number.
#}
{% macro _log_and_rows(target, is_new, is_numbered, caller_name) %}
    {% set read = model.pop('_last_batch_log', none) %}
    {% set counts = is_numbered and model.get('_counts_rows') %}
    {% if not counts %}
        {% set log = dbt_history._log_to_write(
            target, caller_name, read if is_numbered and not is_new else none,
        ) %}
        {% if not is_numbered or log.get('rows') is not none %}
            {% do return({'log': log, 'rows': log.get('rows')}) %}
        {% endif %}
    {% endif %}
    {% set rows = dbt_history._count_rows(target, 'true') %}
    {% do return({'log': dbt_history._log_to_write(target, caller_name), 'rows': rows}) %}
{% endmacro %}


{# Apart, because the pipeline's `log` is the table's. #}
{% macro _log_append(message) %}
    {% do log('dbt_history: ' ~ model.name ~ ': ' ~ message) %}
{% endmacro %}


{#
    Which rows are new, and the number that the commit takes. A SELECT of `changes` says it itself;
    `_batch` numbers the rows; else rows that the table has already, by `unique_key` or as a whole,
    are left out. Returns {'batch', 'is_new', 'is_taken', 'filter', 'kind', 'watermarks', 'about',
    'stages'}.
#}
{% macro _plan_append(target, staged, log, settings, captured, noted, caller_name) %}
    {% set last = log.last_batch if log.last_batch is not none else 0 %}
    {% set plan = {
        'batch': last + 1, 'is_new': true, 'is_taken': false, 'stages': {}, 'key': [],
        'kind': 'rows', 'from': last, 'null_if_empty': settings.get('null_if_empty', []),
    } %}
    {% if captured is not none %}
        {% do plan.update({
            'batch': captured.number, 'kind': 'captured', 'about': captured.about,
            'watermarks': captured.watermarks, 'is_new': captured.is_new,
            'is_taken': captured.number <= last,
        }) %}
        {% if captured.has_moved and not plan.is_taken %}
            {% do return(plan) %}
        {% endif %}
        {% do plan.update({'is_new': captured.is_new and not plan.is_taken}) %}
    {% elif '_batch' in staged.names %}
        {% set last = dbt_history._last_number(log, staged, caller_name) %}
        {% do plan.update({'is_said': log.last_batch is none and log.is_unknown and log.stored}) %}
        {% if noted is not none %}
            {% do plan.update({
                'kind': 'batch', 'from': last, 'batch': noted, 'is_new': noted > last,
            }) %}
            {% do return(plan) %}
        {% endif %}
        {% set row = run_query(
            'select max(`_batch`), count_if(`_batch` is null), count(*) from ' ~ staged.view
                ~ ' where `_batch` is null or `_batch` > ' ~ last
        ).rows[0] %}
        {% if row[1] %}
            {% do dbt_history._refuse_columns(
                ['column _batch is NULL in ' ~ row[1] ~ ' rows: give every row its number'], staged,
                caller_name,
            ) %}
        {% endif %}
        {% do plan.update({
            'kind': 'batch', 'from': last, 'batch': row[0] | int if row[0] is not none else none,
            'is_new': row[0] is not none,
        }) %}
        {% do return(plan) %}
    {% elif settings.key %}
        {% set plan = dict(plan, kind='key', key=settings.key) %}
        {% do dbt_history._refuse_doubles(staged, settings.key, caller_name) %}
    {% endif %}
    {# Without a version to remember, a run without rows writes nothing. #}
    {% if plan.is_new %}
        {% set found = run_query(
            'select 1 from ('
                ~ dbt_history._new_rows_sql(
                    target, staged, staged.columns | map(attribute='name') | list, plan,
                )
                ~ ') as found limit 1'
        ).rows %}
        {% do plan.update({'is_new': found | length > 0}) %}
    {% endif %}
    {% do return(plan) %}
{% endmacro %}


{#
    The last number of a numbered log, -1 before the first. If the table has rows and its log does
    not say it any more, all rows would be appended again, so the user has to say it, once: the run
    records it, also without new rows.

        version    3          4          9          10              11
                   batch 2    optimize   batch 3    restore to 4    all before 9 has expired
#}
{% macro _last_number(log, staged, caller_name) %}
    {% if log.last_batch is not none %}
        {% do return(log.last_batch) %}
    {% elif not log.is_unknown or not log.stored %}
        {% do return(-1) %}
    {% endif %}
    {% set said = var('dbt_history_last_batch', none) | string %}
    {% if modules.re.match('-?[0-9]+$', said) %}
        {% do return(said | int) %}
    {% endif %}
    {% do dbt_history._drop_staged(staged) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'the number of the last batch is not known any more; nothing was written',
        got=log.stored ~ ' rows; the commits with their numbers have expired, all rows were'
            ~ ' rewritten since, or the table is a clone',
        expected='a commit with the number of the last batch', node=model.unique_id,
        way_out='find out which batch the newest rows of the table came with, and say its number'
            ~ ' once: dbt run --select ' ~ model.name
            ~ " --vars 'dbt_history_last_batch: 7' (-1 if no row came with a number)",
    )) %}
{% endmacro %}


{#
    Records the number that the user has said, if there is nothing to append: the next run knows it.
    Delta would take a commit with the number -1 for one that it has, so this one has an id of its
    own.
#}
{% macro _record_said_number(target, staged, plan, log, before, caller_name) %}
    {% set said = {'batch': plan['from'], 'stages': {}, 'null_if_empty': []} %}
    {% if said.batch < 0 %}
        {% do said.update({'once': {
            'app_id': 'dbt_history_said:' ~ model.unique_id,
            'version': (run_started_at.timestamp() * 1000000) | int,
        }}) %}
    {% endif %}
    {% set failed = dbt_history._commit_once(
        target, dbt_history._no_rows_sql(target), said, log, before, caller_name,
    ) %}
    {% if failed not in [none, 'reset'] %}
        {% do dbt_history._finish_writes(target, log) %}
        {% do dbt_history._raise_failed_append(failed, staged, said, caller_name) %}
    {% endif %}
{% endmacro %}


{#
    The number of all rows, if the SELECT consists of `feature_outcomes` alone, which notes it: a
    query for the greatest number would compute all outcomes. None otherwise.
#}
{% macro _noted_batch(select_sql) %}
    {% set note = dbt_history._note_of_all('writes', '', select_sql) %}
    {% do return(note.last if note else none) %}
{% endmacro %}


{#
    The last id before the rows, if the SELECT is `select * from` the rows of a mirror, all of them;
    none otherwise: it may leave rows out, so the ids after it do not follow from their number.
#}
{% macro _noted_last_id(select_sql) %}
    {% set note = dbt_history._note_of_all('ids', 'select\\s+[*]\\s+from\\s+', select_sql) %}
    {% do return(note.last if note else none) %}
{% endmacro %}


{# A note, if the SELECT is `begin` and the text that the note is about; none otherwise. #}
{% macro _note_of_all(name, begin, select_sql) %}
    {% set parts = modules.re.match(
        '(?is)(?:\\s|--[^\n]*\n)*' ~ begin ~ '(/[*] dbt_history:' ~ name
            ~ ' [{].*?[}] [*]/)(.*)$',
        select_sql,
    ) %}
    {% if parts is none %} {% do return(none) %} {% endif %}
    {% set note = dbt_history._notes(name, parts.group(1))[0] %}
    {% do return(note if note.text == local_md5(parts.group(2) | trim) else none) %}
{% endmacro %}


{% macro _append_sql(target, staged, names, plan) %}
    {%- set place = dbt_history._writing_place(target) -%}
    {%- set stamp = plan.get('stamp') -%}
    {%- set is_numbered = stamp == '`_batch`' %}
    insert into {{ dbt_history._quoted_relation(place) }} (
        {{ dbt_history._quoted(names + ([plan.start] if stamp else [])) | join(', ') }}
    )
    {%- set rows = dbt_history._new_rows_sql(
        target, staged, names + (['_batch'] if is_numbered else []), plan, place,
    ) %}
    {{ 'select *, ' ~ stamp ~ ' from (' ~ rows ~ ') as added' if stamp and not is_numbered
        else rows }}
{%- endmacro %}


{#
    The staged rows that the table does not have. One that reads the table itself loses against
    another writer, and is tried again. A row with an empty text in a partition column would be
    stored with NULL, and appended again by each run: it fails.
#}
{% macro _new_rows_sql(target, staged, names, plan, place=none) %}
    {%- set stored = dbt_history._quoted_relation(place or target) -%}
    {%- set cells = [] -%}
    {%- for name in names -%}
        {%- set cell = 'staged.' ~ dbt_history._quote(staged.names[name | lower]) -%}
        {%- do cells.append(
            'if(length(' ~ cell ~ ') = 0, raise_error('
                ~ dbt_history._string_literal('dbt_history: ' ~ dbt_history._empty_partition(plan))
                ~ '), ' ~ cell ~ ') as ' ~ dbt_history._quote(name)
                if name | lower in plan.null_if_empty | map('lower') else cell
        ) -%}
    {%- endfor -%}
    {%- set rows = 'select ' ~ cells | join(', ') ~ ' from ' ~ staged.view ~ ' as staged' -%}
    {%- if plan.kind == 'batch' -%}
        {#-
            Fails where another run appended since the plan. Raised outside the sub-query: Spark's
            script cannot handle what a sub-query raises.
        -#}
        {%- set is_as_planned = 'if((select count(*) from ' ~ stored ~ ') = ' ~ plan.stored
            ~ ", true, raise_error('dbt_history: another run has appended rows since this one was"
                ~ " planned'))" -%}
        {%- do return(
            rows ~ ' where staged.`_batch` > ' ~ plan['from'] ~ ' and staged.`_batch` <= '
                ~ plan.batch ~ ' and ' ~ is_as_planned
        ) -%}
    {%- elif plan.kind == 'key' -%}
        {%- set terms = [] -%}
        {%- for name in plan.key -%}
            {%- do terms.append(
                'staged.' ~ dbt_history._quote(name) ~ ' <=> stored.' ~ dbt_history._quote(name)
            ) -%}
        {%- endfor -%}
        {%- do return(
            rows ~ ' left anti join ' ~ stored ~ ' as stored on ' ~ terms | join(' and ')
        ) -%}
    {%- elif plan.kind == 'rows' -%}
        {%- do return(
            rows ~ ' except all select ' ~ dbt_history._stored_cells(target, staged, names)
                ~ ' from ' ~ stored
        ) -%}
    {%- endif -%}
    {%- do return(rows) -%}
{% endmacro %}


{% macro _empty_partition(plan) %}
    {%- do return(
        'an empty text in a partition column (' ~ plan.null_if_empty | join(', ')
            ~ '), which Delta stores as NULL'
    ) -%}
{% endmacro %}


{#
    The table's columns beside the SELECT's; one that the table is to get, or a field of a struct,
    is NULL in all its rows.
#}
{% macro _stored_cells(target, staged, names) %}
    {%- set there = dbt_history._types_by_name(dbt_history._table_columns(target)) -%}
    {%- set wanted = dbt_history._types_by_name(staged.get('columns', [])) -%}
    {%- set cells = [] -%}
    {%- for name in names -%}
        {%- set type, cell = there.get(name | lower), dbt_history._quote(name) -%}
        {%- do cells.append(
            'null' if type is none
                else dbt_history._converted(cell, type, wanted[name | lower])
                    if dbt_history._is_same_kind(type, wanted.get(name | lower, ''))
                else cell
        ) -%}
    {%- endfor -%}
    {%- do return(cells | join(', ')) -%}
{% endmacro %}


{% macro _refuse_doubles(staged, key, caller_name) %}
    {% set cells = dbt_history._quoted(key) | join(', ') %}
    {% set doubles = run_query(
        'select to_json(struct(' ~ cells ~ ', count(*) as `rows`)) from ' ~ staged.view
            ~ ' group by ' ~ cells ~ ' having count(*) > 1 limit 5'
    ).rows %}
    {% if doubles | length %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'several rows of the SELECT have the same key; nothing was written',
            got='\n    ' ~ doubles | map(attribute=0) | join('\n    '),
            expected='one row per key (unique_key)', node=model.unique_id,
            way_out='remove the duplicates, or name the columns that distinguish the rows',
        )) %}
    {% endif %}
{% endmacro %}


{#
    A handler cannot repeat what it caught: the SELECT is run once more without one, for the message
    of its own error.
#}
{% macro _raise_failed_append(failed, staged, plan, caller_name) %}
    {% if failed in ['refused', 'error'] %}
        {% set text = run_query('select max(length(to_json(struct(*)))) from ' ~ staged.view) %}
    {% endif %}
    {% do dbt_history._drop_staged(staged) %}
    {% set own = {'gone': [
        'files of a source, or of its change data feed, are not there any more (VACUUM)',
        dbt_history._resync_by_diff(),
    ]} %}
    {% if plan.null_if_empty %}
        {% do own.update({'refused': [
            dbt_history._empty_partition(plan),
            'replace it in the SELECT, or make the log without this partition',
        ]}) %}
    {% endif %}
    {% set reason = dbt_history._failure_reason(failed, 'append', 'run the model again', own) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'the rows were not appended: ' ~ reason[0], node=model.unique_id,
        way_out=reason[1],
    )) %}
{% endmacro %}
