{#
    `materialized='history'`: the staged rows of what changed in the model's SELECT since the last
    run, for the pipeline of `history_batch`.

        SELECT of one Delta table that has the feed      -> its feed -.
                                                                       > changes -> batch_rows
        any other SELECT -> compared with open versions  -> difference '

    The table is read once, before anything is planned: the number of the batch, the difference and
    the commit all refer to the same state of its log.
#}
{% macro _capture_and_write(target, existing, select_sql, settings, full_refresh, caller_name) %}
    {% set log = none if existing is none or full_refresh
        else dbt_history._log_to_write(existing, caller_name) %}
    {# The capture is planned after an undo, not before it. #}
    {% do log.pop('is_undone', none) if log is not none %}
    {#
        Rows that dbt hides were not deleted, and the sources count as read only as far as before.
    #}
    {% set is_partial = dbt_history._hiding_option() is not none %}
    {% set rows = dbt_history._history_rows(
        select_sql, dict(settings, source='changes', is_partial=true) if is_partial else settings,
        log,
    ) %}
    {% do dbt_history._refuse_untrue_sample(select_sql)
        if dbt_history._hiding_option() == '--sample' %}
    {% if log is not none %}
        {% do model.update({'_last_batch_log': log}) %}
    {% endif %}
    {% set result = dbt_history._plan_and_write_batches(
        target, existing, rows, settings, full_refresh, caller_name,
    ) %}
    {#
        Another run took the number of the batch. Its rows may be others, and only a SELECT of all
        rows would return these again.
    #}
    {% if settings.source == 'changes' and result.get('replayed') and not result.get('batches')
        and '(select)' in dbt_history._notes('capture', rows) | map(attribute='source') %}
        {% do return({'reset': 'by a batch of another run'}) %}
    {% endif %}
    {% do return(result) %}
{% endmacro %}


{#
    SQL: the staged rows of the changes, as a SELECT of `history_batch` has them. The changes are
    captured, those that count get the point from which they hold, and `batch_rows` makes rows of
    them:

        updated_at   source     the point of a change
        no           any        `_commit_timestamp`: the time of the commit or the run
        yes          state      `__at`: `updated_at`, or later than a deletion (`_timed_changes`)
        yes          changes    `updated_at` itself
#}
{% macro _history_rows(select_sql, settings, log) %}
    {%- set capture = dbt_history._capture_of_select(select_sql, settings, log) -%}
    {%- do capture.update({'is_partial': settings.get('is_partial', false)}) -%}
    {%- do dbt_history._leave_feed(capture) if capture.is_partial -%}
    {%- do dbt_history._refuse_history_columns(capture, settings) -%}
    {%- do dbt_history._let_times_increase(
        capture, dbt_history._first_floor(capture, settings),
    ) -%}
    {%- set updated_at, deleted = settings.updated_at, settings.deleted -%}
    {%- set is_timed = updated_at and settings.source == 'state' -%}
    {%- if updated_at and (settings.source == 'changes' or not capture.segments) -%}
        {#- Several versions of a record differ by their time. -#}
        {%- do capture.update({'key': settings.key + [updated_at]}) -%}
    {%- endif -%}
    {%- set not_stored = dbt_history._columns_not_stored(capture, settings) -%}
    {%- if updated_at -%}
        {%- do capture.update({
            'partly_said': dbt_history._partly_said_columns(
                capture, [updated_at, deleted] | select | list + not_stored,
            ),
        }) -%}
    {%- endif -%}
    {%- set changes = dbt_history._changes_sql(capture, 'skip', ignored=not_stored) -%}
    {%- set rows -%}
        {%- if is_timed -%}
            {{ dbt_history._timed_changes(changes, capture, settings) }}
        {%- else -%}
            {{ dbt_history._kept_changes(changes, capture, settings) }}
        {%- endif -%}
    {%- endset -%}
    {%- set at = '`__at`' if is_timed else dbt_history._quote(updated_at) if updated_at
        else '`_commit_timestamp`' -%}
    {%- set left_out = (['`__at`'] if is_timed else [])
        + ([dbt_history._quote(deleted)] if deleted else []) -%}
    {%- set filled = dbt_history._columns_of_snapshot(capture, settings) -%}
    {%- set staged = dbt_history.batch_rows(
        rows, settings.key, settings.convention, at,
        delete_when=dbt_history._quote(deleted) if deleted else none,
        merge_equal=settings.merge_equal, track_columns=settings.track_columns,
        except=dbt_history._columns_without_version(settings, filled),
    ) -%}
    {%- do return(
        'select *' ~ (' except (' ~ left_out | join(', ') ~ ')' if left_out else '')
            ~ filled | map(attribute='cell') | join('') ~ '\nfrom ' ~ staged
    ) -%}
{% endmacro %}


{# A new `updated_at` alone makes no version, if equal versions are joined; nor do our columns. #}
{% macro _columns_without_version(settings, filled) %}
    {% set omitted = dbt_history._key_columns(settings.except) %}
    {% if settings.merge_equal or omitted %}
        {% do return(
            omitted + ([settings.updated_at] if settings.updated_at else [])
                + filled | map(attribute='name') | list
        ) %}
    {% endif %}
    {% do return(omitted) %}
{% endmacro %}


{#
    The columns of a snapshot of dbt that the table has and the SELECT does not: they are filled as
    dbt fills them, so that the snapshot can go on with the table.
#}
{% macro _columns_of_snapshot(capture, settings) %}
    {% set cells = dbt_history._cells_of_snapshot(
        dbt_history._quoted(settings.key), dbt_history._quote(settings.convention.start),
        settings.convention,
    ) %}
    {% set selected = capture.columns | map(attribute='name') | map('lower') | list %}
    {% set filled = [] %}
    {% for column, cell in cells.items() %}
        {% set name = settings.snapshot_columns.get(column, column) %}
        {% if name | lower in capture.stored and name | lower not in selected %}
            {% do filled.append({
                'name': name, 'cell': ', ' ~ cell ~ ' as ' ~ dbt_history._quote(name),
            }) %}
        {% endif %}
    {% endfor %}
    {% do return(filled) %}
{% endmacro %}


{#
    The cells of a new version in the columns of a snapshot of dbt. `keys` and `start` are SQL.

        dbt_updated_at    the version's start
        dbt_scd_id        hash of key and start, in which two starts with one clock differ
        dbt_is_deleted    'False': a history has no rows for deletions
#}
{% macro _cells_of_snapshot(keys, start, convention) %}
    {% do return({
        'dbt_updated_at': start,
        'dbt_scd_id': snapshot_hash_arguments(
            keys + [dbt_history._start_in_id(start, convention)]
        ),
        'dbt_is_deleted': "'False'",
    }) %}
{% endmacro %}


{#
    The start as text in the id of a version: the clock of the session's time zone, as in the ids of
    dbt's own strategies, which have nothing else. Where the clocks are put back, two times have one
    clock: the later one, which is not what a cast of its text gives, has its number, too.

        00:30 UTC    02:30 in Berlin
        01:30 UTC    02:30 in Berlin, and 1729992600000000
#}
{% macro _start_in_id(start, convention) %}
    {% if convention.type != 'timestamp' %}{% do return(start) %}{% endif %}
    {% set clock = 'cast(' ~ start ~ ' as string)' %}
    {% do return(
        'if(try_cast(' ~ clock ~ ' as timestamp) <=> ' ~ start ~ ', ' ~ clock ~ ', concat('
            ~ clock ~ ", ' ', unix_micros(" ~ start ~ ')))'
    ) %}
{% endmacro %}


{#
    The capture of the SELECT: the feed of the table if the SELECT is `select * from` a Delta table
    with the feed, else the difference of its rows from the open versions. `stored` are the columns
    of the existing table.
#}
{% macro _capture_of_select(select_sql, settings, log) %}
    {% set layout = {'is_versions': true} %}
    {% set table = dbt_history._table_of_select(select_sql) %}
    {% set capture = {} %}
    {% if table is not none %}
        {% set capture = dbt_history._plan_capture(
            table, settings.key, 'auto', 'history', layout=layout, own_log=log,
            fixed=[settings.updated_at, settings.deleted] | select | list,
        ) %}
    {% endif %}
    {% if not (capture.get('head') or {}).get('has_feed') %}
        {% set capture = {
            'relation': 'the SELECT', 'key': settings.key, 'layout': layout,
            'caller_name': 'history',
            'source': '(select)', 'segments': [], 'entries': [], 'renames': [], 'diff': none,
            'watermark': none, 'head': {'is_delta': false, 'version': none, 'entries': []},
            'log': log,
        } %}
        {% set columns = dbt_history._query_columns('(\n' ~ select_sql ~ '\n)') %}
        {% do capture.update({
            'taken': dbt_history._taken_before(capture), 'table': '(\n' ~ select_sql
                ~ '\n) as `selected`',
            'columns': columns, 'head_columns': columns,
        }) %}
        {% do dbt_history._plan_rows_of_select(capture) %}
    {% endif %}
    {% do capture.update({
        'stored': dbt_history._table_columns(this) | map(attribute='name') | map('lower') | list
            if capture.taken.has_rows else [],
        'way_out': 'remove the duplicates; or name all columns that identify a record in'
            ~ ' unique_key; or, if the rows are versions of one record, name the column of their'
            ~ ' time in meta.history.updated_at'
                ~ (
                    ' and list the columns in the SELECT instead of *, so that its rows are'
                        ~ ' compared and the feed, which has one row per record, is not read'
                        if capture.segments else ''
                ),
    }) %}
    {% if capture.diff is not none %}
        {# Who changed a row is not stored. #}
        {% do capture.diff.update({'commit': 'cast(null as bigint)', 'is_one_commit': false}) %}
    {% endif %}
    {% if settings.deleted and capture.diff is not none %}
        {% do dbt_history._compare_deletions(capture, settings.deleted) %}
    {% endif %}
    {% do return(capture) %}
{% endmacro %}


{#
    A run with hidden rows takes nothing where the last whole run has read the feed of a table: the
    next one reads the feed from there, and would find its changes once more.

        feed    1: a           1: b   1: c
        run     whole: a                       --sample: nothing     whole: b, c
#}
{% macro _leave_feed(capture) %}
    {% if capture.segments or capture.taken.other_sources %}
        {# Without the columns that only the feed has. #}
        {% set there = capture.head_columns | map(attribute='name') | list %}
        {% do capture.update({
            'segments': [], 'diff': none, 'watermark': none,
            'columns': capture.columns | selectattr('name', 'in', there) | list,
        }) %}
    {% endif %}
{% endmacro %}


{# With `on_schema_change: ignore`, a column that is not stored would differ in every run. #}
{% macro _columns_not_stored(capture, settings) %}
    {% set names = [] %}
    {% for column in capture.columns
        if settings.on_schema_change == 'ignore' and capture.stored
            and column.name | lower not in capture.stored
            and column.name | lower != (settings.deleted or '') | lower %}
        {% do names.append(column.name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{# The names in `select * from <schema>.<table>`; none for any other SELECT. #}
{% macro _names_of_select(select_sql) %}
    {% set text = modules.re.sub('(?s)/[*].*?[*]/|--[^\n]*', ' ', select_sql) %}
    {% set part = '(?:`(?:[^`]|``)+`|[A-Za-z0-9_]+)' %}
    {% set found = modules.re.match(
        '(?i)^\\s*select\\s+[*]\\s+from\\s+(' ~ part ~ '(?:[.]' ~ part ~ '){1,2})\\s*$', text,
    ) %}
    {% if found is none %}
        {% do return(none) %}
    {% endif %}
    {% set names = [] %}
    {% for name in modules.re.findall(part, found.group(1)) %}
        {% do names.append(
            name[1:-1].replace('``', '`') if name.startswith('`') else name
        ) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    Whether the SELECT of a `history` model is `select * from` one relation, by its code before dbt
    renders it.
#}
{% macro _is_raw_select_of_table(raw_code) %}
    {% set text = modules.re.sub(
        '(?s)[{]#.*?#[}]|[{]%.*?%[}]|[{]{2}-?\\s*config\\s*[(].*?[)]\\s*-?[}]{2}', ' ', raw_code,
    ) %}
    {% set text = modules.re.sub(
        '(?s)[{]{2}-?\\s*(?:(?:ref|source)\\s*[(][^{}]*[)]|\\w+)\\s*-?[}]{2}', 'schema.name', text,
    ) %}
    {% do return(dbt_history._names_of_select(text) is not none) %}
{% endmacro %}


{# The table of `select * from <table>`; none for any other SELECT, and for a view. #}
{% macro _table_of_select(select_sql) %}
    {% set names = dbt_history._names_of_select(select_sql) %}
    {% if names is none %}
        {% do return(none) %}
    {% endif %}
    {% set table = load_relation(api.Relation.create(
        schema=names[:-1] | join('.'), identifier=names[-1],
    )) %}
    {% do return(none if table is none or table.is_view else table) %}
{% endmacro %}


{# Plans the difference of the SELECT's rows from the open versions. #}
{% macro _plan_rows_of_select(capture) %}
    {% set taken = capture.taken %}
    {% if taken.is_suspended %}
        {% do log('dbt_history: capture into ' ~ this ~ ' is suspended', info=true) %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._plan_unversioned(capture, 'diff') %}
    {% do capture.diff.update({'columns': capture.columns}) %}
    {% if capture.diff.state %}
        {% set names = capture.columns | map(attribute='name') | map('lower') | list %}
        {% set there = [] %}
        {% for column in dbt_history._table_columns(this) if column.name | lower in names %}
            {% do there.append(column) %}
        {% endfor %}
        {% do capture.diff.update({'state_columns': there}) %}
    {% endif %}
    {% do capture.update({'columns': dbt_history._with_fields(
        capture, dbt_history._with_widest_types(capture, capture.columns),
    )}) %}
{% endmacro %}


{#
    An open version has no deletion mark, so a row without the mark must compare as NULL: false
    would differ from it in every run.
#}
{% macro _compare_deletions(capture, deleted) %}
    {% set name = dbt_history._column_of(capture, deleted) %}
    {% set version = capture.diff.version %}
    {% set columns = [] %}
    {% for column in capture.diff.columns %}
        {% set quoted = dbt_history._quote(column.source or column.name) %}
        {% do columns.append(
            'if(' ~ quoted ~ ', true, null) as ' ~ quoted
                if column.name | lower == name | lower else quoted
        ) %}
    {% endfor %}
    {# Not the table of the capture, whose feed may be read as well. #}
    {% do capture.diff.update({
        'table': '(select ' ~ columns | join(', ') ~ ' from ' ~ capture.table
            ~ (' version as of ' ~ version if version is not none else '') ~ ') as `marked`'
    }) %}
{% endmacro %}


{#
    What the times of this run have to exceed, where no earlier run has recorded it (an adopted
    table, or its log has expired): the latest point of the versions. None if rows have their own
    times.
#}
{% macro _first_floor(capture, settings) %}
    {% set is_given = settings.updated_at and settings.source == 'changes' %}
    {% set is_recorded = 'latest' in (capture.taken.about.get('times') or {}) %}
    {% do return(
        dbt_history._latest_point(settings.convention)
            if capture.taken.has_rows and not is_given and not is_recorded else none
    ) %}
{% endmacro %}


{#
    The latest start or end of the stored versions that is not in the future, in microseconds. A day
    is its midnight in UTC.
#}
{% macro _latest_point(convention) %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set is_days = convention.type == 'date' %}
    {% set tomorrow = '(current_timestamp() + interval 1 day)' %}
    {% set latest = run_query(
        'select ' ~ ('86400000000L * unix_date(' if is_days else 'unix_micros(')
            ~ 'cast(max(greatest(if(' ~ start ~ ' <= now, ' ~ start
            ~ ', null), if(until <= now, until, null))) as '
            ~ ('date' if is_days else 'timestamp') ~ ')) from (select ' ~ start ~ ', '
            ~ dbt_history._end_of_period(convention) ~ ' as until, '
            ~ (dbt_history._utc_day(tomorrow) if is_days else tomorrow) ~ ' as now from '
            ~ dbt_history._quoted_relation(this) ~ ') as points'
    ).rows[0][0] %}
    {% do return(latest | int if latest is not none else none) %}
{% endmacro %}


{#
    The changes that count, if their time is not the subject of `_timed_changes`. With `source:
    changes` a missing row is unchanged. A deletion that is found in the SELECT again, without a
    time of its own, has been applied.
#}
{% macro _kept_changes(changes, capture, settings) %}
(
    select * except (`_changed_by`)
    from {{ changes | indent(4) }} as `changes`
    {%- if settings.source == 'changes' %}
    where `_change_type` in ('insert', 'update_postimage')
        {%- if settings.deleted and not settings.updated_at and not capture.segments %}
        and not (
            `_change_type` = 'insert'
            and coalesce({{ dbt_history._quote(settings.deleted) }}, false)
        )
        {%- endif %}
    {%- endif %}
)
{%- endmacro %}


{#
    The changes of a state whose rows have a time of their own; a deletion has only that of the
    commit or the run. `__at` is the point of a change:

        commit or run    6             12         14
        changes          insert u=5    delete     insert u=5 again
        __at             5             12         14
        table            [ a ----------)          [ a ---- open

    A deletion comes after every version that it ends, even if they are in the future. A record that
    reappears with a time before its deletion begins again at the commit's time, because the
    deletion would end it; and so does its next version, if its time is before this beginning
    (`__gone` before the run, `__began` in it). An `updated_at` that goes back (`__newest`) is a
    late version.

    The changes are read twice, for their rows and for their keys, and evaluated once: Spark does
    not inline a WITH that is not deterministic (`rand`), and uses one shuffle (`distribute by`) for
    both. No MERGE reads the WITH: rows that depend on the model's own table are copied to a table.
#}
{% macro _timed_changes(changes, capture, settings) %}
{%- set convention = settings.convention -%}
{%- set keys = dbt_history._quoted(settings.key) | join(', ') -%}
{%- set time = dbt_history._quote(settings.updated_at) -%}
{%- set is_gone = "(`_change_type` = 'delete')" -%}
{%- set later = dbt_history._next_point -%}
{%- set has_rows = capture.taken.has_rows -%}
{%- set nothing = dbt_history._literal(none, convention) -%}
(
    {%- if has_rows %}
    with `once` as (
        select * except (`_changed_by`)
        from {{ changes | indent(8) }} as `changes`
        where rand() >= 0
        distribute by {{ keys }}
    )
    {%- endif %}

    select
        * except (
            `__time`, `__moment`, `__start`, `__seen`, `__until`, `__place`, `__is_there`,
            `__point`, `__gone`, `__part`, `__newest`, `__began`
        ),
        if(
            not {{ is_gone }} and `__place` = 1
                and `__time` >= coalesce(`__newest`, `__time`)
                and coalesce(`__time` <= greatest(`__gone`, `__began`), false),
            greatest(`__moment`, `__gone`),
            `__point`
        ) as `__at`
    from (
        select
            *,
            max(if({{ is_gone }}, null, `__time`)) over earlier as `__newest`,
            if(
                bool_or(not {{ is_gone }} and `__time` <= `__gone`) over earlier,
                max(`__moment`) over earlier,
                null
            ) as `__began`
        from (
            select
                *,
                count_if({{ is_gone }}) over earlier as `__part`,
                greatest(
                    `__until`,
                    if(`__time` >= `__seen` and `__start` > `__time`, `__start`, null),
                    max(if({{ is_gone }}, `__point`, null)) over earlier
                ) as `__gone`
            from (
                select
                    *,
                    if(
                        {{ is_gone }},
                        greatest(
                            `__moment`,
                            {{ later('`__start`', convention) }},
                            {{ later('max(`__time`) over (partition by ' ~ keys
                                ~ ' order by `_commit_version`)', convention) }}
                        ),
                        `__time`
                    ) as `__point`
                from (
                    select
                        `changes`.*{{ ' except (`_changed_by`)' if not has_rows }},
                        {{ time }} as `__time`,
                        {{ dbt_history._utc_day('`_commit_timestamp`')
                            if convention.type == 'date'
                            else 'cast(`_commit_timestamp` as ' ~ convention.type ~ ')' }}
                            as `__moment`,
                        {%- for name in ['__start', '__seen', '__until'] %}
                        {{ '`stored`.`' ~ name ~ '`' if has_rows else nothing }} as `{{ name }}`,
                        {%- endfor %}
                        row_number() over (
                            partition by {{ keys }}, `_commit_version`
                            order by {{ is_gone }}, {{ time }} desc
                        ) as `__place`,
                        bool_or(not {{ is_gone }}) over (
                            partition by {{ keys }}, `_commit_version`
                        ) as `__is_there`
                    from {{ '`once`' if has_rows else changes | indent(20) }} as `changes`
                    {%- if has_rows %}
                    left join (
                        {{ dbt_history._stored_points('`once`', capture, settings) | indent(24) }}
                    ) as `stored`
                        on {{ dbt_history._same_key(settings.key, '`changes`') }}
                    {%- endif %}
                    where `_change_type` <> 'update_preimage'
                ) as `placed`
                where not ({{ is_gone }} and `__is_there`)
            ) as `pointed`
            window earlier as (
                partition by {{ keys }}
                order by `_commit_version`
                range between unbounded preceding and 1 preceding
            )
        ) as `ended`
        window earlier as (
            partition by {{ keys }}, `__part`
            order by `_commit_version`
            range between unbounded preceding and 1 preceding
        )
    ) as `begun`
)
{%- endmacro %}


{#
    By key, for the changed records: the start of the open version or of its last change, its
    `updated_at`, and when the record ended if it has none. Several open versions would contradict
    each other: a deletion of one of them is not a deletion of the record.
#}
{% macro _stored_points(changes, capture, settings) %}
{%- set convention = settings.convention -%}
{%- set time = dbt_history._quote(settings.updated_at)
    if settings.updated_at | lower in capture.stored else dbt_history._literal(none, convention) -%}
{%- set start = dbt_history._quote(convention.start) -%}
{%- set is_open = dbt_history._is_open(convention) -%}
select
    {%- for name in settings.key %}
    {{ dbt_history._quote(name) }} as `__key_{{ loop.index }}`,
    {%- endfor %}
    if(
        count_if({{ is_open }}) > 1,
        raise_error({{ dbt_history._string_literal(dbt_history._message(
            'history', 'a record has several open versions', node=model.unique_id,
            expected='one open version per record (the test one_active_version lists the others)',
            way_out='close all but the newest one',
        )) }}),
        if(count_if({{ is_open }}) = 1, max({{ start }}), null)
    ) as `__start`,
    max(if({{ is_open }}, {{ time }}, null)) as `__seen`,
    if(
        count_if({{ is_open }}) > 0,
        null,
        max({{ dbt_history._end_of_period(convention) }})
    ) as `__until`
from {{ dbt_history._quoted_relation(this) }} as `stored`
left semi join (
    select {{ dbt_history._quoted(settings.key) | join(', ') }}
    from {{ changes }} as `changes`
) as `touched`
    on {{ dbt_history._same_key(settings.key, '`touched`', is_named=true) }}
group by {{ dbt_history._quoted(settings.key) | join(', ') }}
{%- endmacro %}


{# The key of `left` is that of `stored`, there under its own names or as `__key_1`, … #}
{% macro _same_key(key, left, is_named=false) %}
    {%- set terms = [] -%}
    {%- for name in key -%}
        {%- do terms.append(
            left ~ '.' ~ dbt_history._quote(name) ~ ' <=> `stored`.'
                ~ (dbt_history._quote(name) if is_named else '`__key_' ~ loop.index ~ '`')
        ) -%}
    {%- endfor -%}
    {%- do return(terms | join(' and ')) -%}
{% endmacro %}


{# The point after `expression` on an axis of times. #}
{% macro _next_point(expression, convention) %}
    {%- do return(
        'date_add(' ~ expression ~ ', 1)' if convention.type == 'date'
            else '(' ~ expression ~ ' + interval 1 microsecond)'
    ) -%}
{% endmacro %}


{# Refuses names that the history or its bookkeeping needs, and columns that the settings name. #}
{% macro _refuse_history_columns(capture, settings) %}
    {% set convention = settings.convention %}
    {% set period = dbt_history._period_columns(convention) | map('lower') | list %}
    {% set own = [
        '_stage', '_batch', '_order', '_unmodified', '_begins', '_at', '_place', '_life',
        '_is_update', '_change_type', '_commit_version', '_commit_timestamp', '_changed_by', '__at',
        '__time', '__moment', '__start', '__seen', '__until', '__place', '__is_there', '__point',
        '__gone', '__part', '__newest', '__began',
    ] %}
    {% set types = {} %}
    {% set problems = dbt_history._misplaced_columns(model, capture.columns) %}
    {% set ways = [] %}
    {% set names = capture.columns | map(attribute='name') | map('lower') | list %}
    {% for column in capture.columns %}
        {% set name = column.name | lower %}
        {% do types.update({name: column.type}) %}
        {% if name in period %}
            {% do problems.append(
                'column ' ~ column.name ~ ' has the name of a column of the period (convention '
                    ~ convention.name ~ ')'
            ) %}
            {% do ways.append(
                'rename the column in the SELECT, or give the period other names, for example'
                    ~ ' meta: {history: {convention: ' ~ convention.name
                    ~ ', start: recorded_from, end: recorded_to}}'
            ) %}
        {% elif name in own %}
            {% do problems.append(
                'column ' ~ column.name ~ ' has a name that the history needs'
            ) %}
            {% do ways.append('rename the column in the SELECT') %}
        {% endif %}
    {% endfor %}
    {% for name in types if names.count(name) > 1 %}
        {% do problems.append('several columns are named ' ~ name) %}
        {% do ways.append('name each column once') %}
    {% endfor %}
    {% set lacking = [] %}
    {% for name in settings.key + dbt_history._period_columns(convention)
        if capture.stored and name | lower not in capture.stored %}
        {% do lacking.append(name) %}
    {% endfor %}
    {% if lacking %}
        {% do problems.append(
            'the table that exists has no column ' ~ lacking | join(', ') ~ ' (convention '
                ~ convention.name ~ ', unique_key ' ~ settings.key | join(', ') ~ ')'
        ) %}
        {% set renamed = dbt_history._key_renamed_in_source(capture, settings.key, lacking) %}
        {% if renamed %}
            {% do ways.append(
                'if the column was renamed in the source, rename it in the history, too: '
                    ~ renamed | join('; ')
            ) %}
        {% endif %}
        {% do ways.append(
            'to go on with the table, name its key in unique_key and its period in meta.history;'
                ~ ' for a new history, rename the table or give the model another alias'
        ) if renamed | length < lacking | length %}
    {% endif %}
    {% set typed = [
        ('unique_key', none, settings.key), ('updated_at', convention.type, [settings.updated_at]),
        ('deleted', 'boolean', [settings.deleted]),
    ] %}
    {% for setting, type, names in typed %}
        {% for name in names if name %}
            {% if name | lower not in types %}
                {% do problems.append(
                    setting ~ ' is ' ~ name ~ ', and the SELECT has no such column'
                        ~ dbt_history._did_you_mean(name, types)
                        ~ (': several columns are a list' if ',' in name)
                ) %}
            {% elif type and not dbt_history._type_fits(types[name | lower], type) %}
                {% do problems.append(
                    setting ~ ' is ' ~ name ~ ', which is ' ~ types[name | lower] ~ ', not ' ~ type
                        ~ ': cast it in the SELECT'
                ) %}
            {% endif %}
        {% endfor %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'history', 'the columns of the SELECT do not fit; nothing was written',
            got='\n    ' ~ problems | join('\n    '), node=model.unique_id,
            way_out=ways | unique | join('; ') or none,
        )) %}
    {% endif %}
    {% do dbt_history._refuse_captured_columns(capture) %}
{% endmacro %}


{#
    The run-operations that give the table the new names of key columns: those that it lacks, in
    whose place its batches record a column that the SELECT does not have any more.

        recorded key    id              rename_column: id -> code
        unique_key      code
        SELECT          code, v
#}
{% macro _key_renamed_in_source(capture, key, lacking) %}
    {% set known = (capture.get('log') or {}).get('key') or [] %}
    {% set names = capture.columns | map(attribute='name') | map('lower') | list %}
    {% set commands = [] %}
    {% for name in key if name in lacking and known | length == key | length %}
        {% set former = known[key.index(name)] %}
        {% do commands.append(
            "dbt run-operation rename_column --args '" ~ tojson({
                'table': this.schema ~ '.' ~ this.identifier, 'from_column': former,
                'to_column': name,
            }) ~ "'"
        ) if former | lower not in names and former | lower in capture.stored %}
    {% endfor %}
    {% do return(commands) %}
{% endmacro %}
