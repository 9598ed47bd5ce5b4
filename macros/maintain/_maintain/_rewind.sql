{#
    What prevents a rewind. Of version tables it sets `commits`, their log before everything that is
    computed from them: a batch that another run applies later is then noticed before the MERGE.
    With a batch of the source that is read after it, the table would not be in the earlier state:

        source    a1    a2 (read)         a3
        table     [ a1 )[ a2 ------------ rewound: [ a1 )[ a2 )[ a1 --
        next run                          [ a1 )[ a2 )[ a3 )[ a1 --, or a3 in the place of the last
#}
{% macro _check_rewind(tables, only, said) %}
    {% set problems = [] %}
    {% for table in tables %}
        {% do dbt_history._find_namespace(table) %}
        {% if (table.get('node') or {}).get('resource_type') == 'snapshot' %}
            {% do problems.append(
                table.name ~ ': it is a snapshot of dbt, which finds versions by dbt_scd_id and'
                    ~ ' would lose the next change: set its source back and run dbt snapshot, or'
                    ~ ' move it to a history model first (dbt-history adopt)'
            ) %}
        {% elif table.namespace and table.relation.is_iceberg %}
            {% do problems.append(
                table.name
                    ~ ': its states come from a log of writes, which has to be a Delta table, and'
                    ~ ' it is on Iceberg'
            ) %}
        {% elif table.namespace and not (said.writes and said.app_id) %}
            {% do problems.append(
                table.name
                    ~ ': its states come from a log of writes: say the log (writes) and who writes'
                    ~ ' (app_id)'
            ) %}
        {% elif table.namespace %}
            {% set problem = dbt_history._payload_problem(
                dbt_history._table_columns(table.relation),
                dbt_history._table_columns(dbt_history._table_name(said.writes)),
                table.key, said.payload,
            ) %}
            {% do problems.append(table.name ~ ': ' ~ problem) if problem %}
        {% elif dbt_history._identity_columns(table.convention) | length > 1
            and table.convention.type != 'bigint' %}
            {% do problems.append(
                table.name ~ ': its versions have numbers (' ~ table.convention.version_id
                    ~ '), and a restored one would have none'
            ) %}
        {% endif %}
        {% set log = none if table.namespace
            else dbt_history._commit_log(table.relation, model.unique_id) %}
        {% do table.update({'commits': log}) %}
        {% set misplaced = (log or {}).get('misplaced') %}
        {% set unread = dbt_history._unread_commits_of(log, relation=table.relation)
            if not misplaced else none %}
        {% if misplaced %}
            {# A RESTORE undoes it, and a check or a dry run changes nothing. #}
            {% do problems.append(
                table.name ~ ': it was reset while batch ' ~ misplaced.record.batch
                    ~ ' was being written: run ' ~ table.name ~ ', which undoes that batch, and'
                    ~ ' rewind then'
            ) %}
        {% elif dbt_history._is_suspended(log) %}
            {% do problems.append(
                table.name ~ ': it is suspended, and the restored state would be held back:'
                    ~ ' resume_history first, and suspend_history again after the rewind'
            ) %}
        {% elif unread is not none %}
            {% do problems.append(
                table.name ~ ': it has not read ' ~ unread ~ ', and would follow it after the'
                    ~ ' rewind: stop the writers of the source, run ' ~ table.name
                    ~ ', and rewind then'
            ) %}
        {% endif %}
        {% set problems_of_tracked = [] if table.namespace else dbt_history._check_tracked_columns(
            dbt_history._table_columns(table.relation),
            {'tracked': dbt_history._recorded_tracked(table.relation)},
        ) %}
        {% for problem in problems_of_tracked %}
            {% do problems.append(
                table.name ~ ': ' ~ problem ~ ': name the columns of the table in the model, whose'
                    ~ ' next batch records them, and rewind then'
            ) %}
        {% endfor %}
        {% for name in (only or {}) if name not in table.key %}
            {% do problems.append(
                table.name ~ ': only names ' ~ name ~ ', which is not a key column'
            ) %}
        {% endfor %}
        {% for problem in dbt_history._key_problems(
            only, dbt_history._table_columns(table.relation),
        ) %}
            {% do problems.append(table.name ~ ': ' ~ problem) %}
        {% endfor %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind', 'this cannot be rewound; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
        )) %}
    {% endif %}
{% endmacro %}


{#
    Sets `to` and `from_now` of each table, as text of its axis. The restored state begins after
    everything in the tables, at one point for all tables with the same type of axis, so that an
    as-of query over them returns either all of it or none. On an axis of days it begins today, and
    is refused if a record that it changes has a version that begins or ends today:

        day      1 Jan       today              tomorrow
        a        [ a1 ------)[ a2 --------------
        rewound  [ a1 ------)[ a1 --------------                a2 would be lost
#}
{% macro _rewind_points(tables, to, at, only) %}
    {% set at = none if at is string and at | trim | lower == 'now' else at %}
    {% set starts, presents = {}, {} %}
    {% for table in tables %}
        {% set convention = table.convention %}
        {% do table.update({
            'to': dbt_history._transaction_at_time(to, table)
                or dbt_history._evaluated_point(to, table, 'rewind', 'to'),
            'from_now': dbt_history._evaluated_point(at, table, 'rewind') if at is not none
                else none,
        }) %}
        {% set next = dbt_history._axis_number('version', convention) ~ ' + '
            ~ (dbt_history._rewind_step(convention) if convention.type != 'date' else 0) %}
        {% set present = dbt_history._point('now', {'convention': convention}, 'rewind') %}
        {% set row = run_query(
            'select coalesce(' ~ next ~ ', 0), '
                ~ (dbt_history._axis_number(present, convention) if present is not none else '0')
                ~ ', ' ~ dbt_history._axis_number(
                    dbt_history._literal(table.from_now, convention), convention,
                )
            ~ ' from ' ~ dbt_history.current_version(table.relation, convention) ~ ' as found'
        ).rows[0] %}
        {% do table.update({'next': row[0] | int, 'begins': row[2]}) %}
        {# The clock goes on from table to table. #}
        {% do presents.update({
            convention.type: [presents.get(convention.type, 0), row[1] | int] | max,
        }) %}
    {% endfor %}
    {% for table in tables %}
        {% set type = table.convention.type %}
        {% do table.update({'latest_begin': [table.next, presents[type]] | max}) %}
        {% do starts.update({type: [starts.get(type, 0), table.latest_begin] | max}) %}
    {% endfor %}
    {% for table in tables %}
        {% set convention = table.convention %}
        {% set number = starts[convention.type] if table.begins is none else table.begins | int %}
        {% do table.update({
            'begins': number,
            'from_now': table.from_now or dbt_history._axis_text(number, convention),
        }) %}
    {% endfor %}
    {% do dbt_history._refuse_late_rewind(tables, at, only) %}
    {% do dbt_history._refuse_early_rewind(tables, at, only) %}
    {% for table in tables if table.get('commits') is not none %}
        {% do table.commits.update({
            'begins': dbt_history._begun_until(table.begins, table.convention),
        }) %}
    {% endfor %}
{% endmacro %}


{#
    Refuses a restored state that would begin in the future of a table that captures changes (it has
    watermarks): those until then would be moved to after it (`_times.sql`), or hidden by it if they
    have times or numbers of their own:

        now                   change        at
        [ a --------------------------------[ restored )[ change ---

    Numbers have no present: those of the source follow the newest one of the table. So there is
    one place for a restored state until the next change, which then may take it:

        source   5                                       6
        table    [ a2 )[ rewound: 6 )[ again: 7 -----    a3 would be hidden
#}
{% macro _refuse_late_rewind(tables, at, only) %}
    {% set problems, repeated = [], [] %}
    {% for table in tables if (table.get('commits') or {}).get('watermarks') %}
        {% set is_repeated = table.convention.type == 'bigint'
            and table.commits.get('copies_watermarks') %}
        {# A killed call can be repeated: it finds nothing to rewind. #}
        {% if (is_repeated or table.begins > table.latest_begin)
            and run_query(dbt_history._rewind_begin_sql(table, only)).rows[0][2] | int %}
            {% do repeated.append(table.name) if is_repeated %}
            {% do problems.append(
                table.name ~ ': it would begin at ' ~ table.from_now
                    ~ (', and was rewound since the newest change that it has read' if is_repeated
                        else ', and has to begin at '
                            ~ dbt_history._axis_text(table.latest_begin, table.convention)
                            ~ ' or earlier')
            ) %}
        {% endif %}
    {% endfor %}
    {% if problems %}
        {% set ways = [] %}
        {% do ways.append(
            'rewind ' ~ repeated | join(', ') ~ ' after a run that has read another change, or'
                ~ ' set it back with RESTORE to before the last rewind'
        ) if repeated %}
        {% do ways.append(
            'leave `at` out, or rewind then' if at is not none else 'rewind the tables one by one'
        ) if problems | length > repeated | length %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind',
            'the restored state would begin in the future of tables that capture changes, and hide'
                ~ ' those until then; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
            way_out=ways | join('; '),
        )) %}
    {% endif %}
{% endmacro %}


{# What a restored version begins after the start or end of another, in units of the axis. #}
{% macro _rewind_step(convention) %}
    {% do return([dbt_history._gap_units(convention), 1] | max) %}
{% endmacro %}


{#
    Refuses a restored state that would not begin after everything that is stored, with `only` after
    everything of that record. On an axis of days other records may have versions of the same day.
    Where there is nothing to rewind, nothing is refused: a killed call can be repeated.

        version   1          3          4
        a         [ a1 -----)[ a2 ------------      from 3 on: a1 would replace a2, whose only
        c                               [ c1 -      copy is lost, and c has no version to end

    The log of feature states has its own end.
#}
{% macro _refuse_early_rewind(tables, at, only) %}
    {% set problems, types, captured = [], [], [] %}
    {% for table in tables
        if not table.namespace and (at is not none or table.convention.type == 'date') %}
        {% set row = run_query(dbt_history._rewind_begin_sql(table, only)).rows[0] %}
        {% if row[2] | int and row[0] | int < row[1] | int %}
            {% do types.append(table.convention.type) %}
            {% do captured.append(table.name) if table.convention.type == 'date'
                and (table.get('commits') or {}).get('watermarks') %}
            {% do problems.append(
                table.name ~ ': it would begin at ' ~ table.from_now ~ ', and can begin at '
                    ~ dbt_history._axis_text(row[1], table.convention)
            ) %}
        {% endif %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind',
            'the restored state would not begin after all stored versions, and history would be'
                ~ ' lost; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
            way_out='leave `at` out, and rewind on that day or later' if captured
                else 'set `at` to that point or a later one, or leave it out'
                    ~ (' and rewind on that day or later' if 'date' in types else ''),
        )) %}
    {% endif %}
{% endmacro %}


{#
    One row of numbers of the axis: where the restored state begins, from where on it can begin, and
    how many stored versions the records have that it changes.
#}
{% macro _rewind_begin_sql(table, only) %}
    {%- set convention = table.convention -%}
    {%- set step = dbt_history._rewind_step(convention) -%}
    {%- set keys = dbt_history._quoted(table.key) -%}
    {%- set matched = [] -%}
    {%- for name in keys -%}
        {%- do matched.append('stored.' ~ name ~ ' = changed.' ~ name) -%}
    {%- endfor -%}
    {%- set newest = dbt_history._axis_number(
        'greatest(stored.' ~ dbt_history._quote(convention.start) ~ ', '
            ~ dbt_history._end_of_period(convention, 'stored.') ~ ')',
        convention,
    ) -%}
    select
        {{ dbt_history._axis_number(
            dbt_history._literal(table.from_now, convention), convention,
        ) }} as begins,
        greatest(
            max({{ newest }}) + {{ 0 if convention.type == 'date' else step }},
            max(if(changed.{{ keys[0] }} is not null, {{ newest }}, null)) + {{ step }}
        ) as can_begin,
        count(changed.{{ keys[0] }}) as versions
    from (
        select *
        from {{ dbt_history._quoted_relation(table.relation) }}
        where {{ dbt_history._key_filter(
            only, dbt_history._table_columns(table.relation),
        ) }}
    ) as stored
    left join (
        select distinct {{ keys | join(', ') }}
        from (
            {{ dbt_history._rewind_sql(table, only) }}
        ) as batch
    ) as changed on {{ matched | join(' and ') }}
{%- endmacro %}


{#
    The batch: a record that existed then and is missing or different now gets a new version; a
    record that exists now and did not then is ended. No WITH (decision 8).
#}
{% macro _rewind_sql(table, only) %}
    {%- set convention = table.convention -%}
    {%- set period = dbt_history._period_columns(convention) -%}
    {%- set numbered = convention.version_id
        if dbt_history._identity_columns(convention) | length > 1 else none -%}
    {%- set columns = dbt_history._without(
        dbt_history._table_columns(table.relation), period + ([numbered] if numbered else []),
    ) -%}
    {%- set keys = dbt_history._quoted(table.key) -%}
    {%- set from_now = dbt_history._literal(table.from_now, convention) -%}
    {%- set was = dbt_history.as_of(table.relation, table.to, convention) -%}
    {%- set is_now = '(select * from ' ~ dbt_history._quoted_relation(table.relation) ~ ' where '
        ~ dbt_history._is_open(convention) ~ ')' -%}
    {%- set filter = dbt_history._key_filter(only, columns) -%}
    {%- set renewed = dbt_history._renewed_cells(table, columns, from_now) -%}
    {%- set same = [] -%}
    {%- for column in columns if column.name | lower not in renewed -%}
        {%- set name = dbt_history._quote(column.name) -%}
        {%- do same.append(
            dbt_history._comparable('was.' ~ name, column.type) ~ ' <=> '
                ~ dbt_history._comparable('is_now.' ~ name, column.type)
        ) -%}
    {%- endfor -%}
    {%- set matched = [] -%}
    {%- for name in keys -%}
        {%- do matched.append('was.' ~ name ~ ' = is_now.' ~ name) -%}
    {%- endfor -%}
    select
        'upsert' as _stage,
        {%- for column in columns %}
        {%- set name = dbt_history._quote(column.name) %}
        {%- set cell = renewed.get(column.name | lower) %}
        {{ cell ~ ' as ' ~ name if cell else 'was.' ~ name }},
        {%- endfor %}
        {{ from_now }} as {{ dbt_history._quote(convention.start) }},
        {{ dbt_history._open_end(convention) }} as {{ dbt_history._quote(convention.end) }}
        {%- if numbered %},
        (
            select max({{ dbt_history._quote(numbered) }})
            from {{ dbt_history._quoted_relation(table.relation) }}
        )
            + row_number() over (
                order by was.{{ keys | join(', was.') }}
            ) as {{ dbt_history._quote(numbered) }}
        {%- endif %}
        {%- if convention.active %},
        true as {{ dbt_history._quote(convention.active) }}
        {%- endif %}
    from (select * from {{ was }} as was where {{ filter }}) as was
    left join {{ is_now }} as is_now on {{ matched | join(' and ') }}
    where is_now.{{ keys[0] }} is null or not ({{ same | join(' and ') }})

    union all

    select
        'delete' as _stage,
        {%- for column in columns %}
        is_now.{{ dbt_history._quote(column.name) }},
        {%- endfor %}
        cast(null as {{ convention.type }}) as {{ dbt_history._quote(convention.start) }},
        {{ dbt_history._shift_by_gap(from_now, convention) }}
            as {{ dbt_history._quote(convention.end) }}
        {%- if numbered %},
        cast(null as bigint) as {{ dbt_history._quote(numbered) }}
        {%- endif %}
        {%- if convention.active %},
        false as {{ dbt_history._quote(convention.active) }}
        {%- endif %}
    from (select * from {{ is_now }} as is_now where {{ filter }}) as is_now
    left anti join {{ was }} as was on {{ matched | join(' and ') }}
{%- endmacro %}


{#
    What a restored version does not have of the earlier one, in a table that was a snapshot of dbt:
    the id, by which dbt finds one version, and the time that is its start. By column, in lower
    case; none of a table without the id.

        id X               id Y            id Z
        [ a --------------)[ b -----------)[ a ----    not X

    A history of a snapshot has these columns from its source, with the snapshot's period beside its
    own, or with the id as its key: there they are data.
#}
{% macro _renewed_cells(table, columns, from_now) %}
    {% set node = table.get('node') %}
    {% set meta = dbt_history._history_meta(node, 'rewind') if node else {} %}
    {% set said = meta.get('snapshot_columns') %}
    {% set said = said if said is mapping else {} %}
    {% set there = columns | map(attribute='name') | map('lower') | list %}
    {% set id = (said.get('dbt_scd_id') or 'dbt_scd_id') | lower %}
    {% set renewed = {} %}
    {% if id in there and 'dbt_valid_from' not in there
        and id not in table.key | map('lower') %}
        {% set keys = [] %}
        {% for name in dbt_history._quoted(table.key) %}
            {% do keys.append('was.' ~ name) %}
        {% endfor %}
        {% set cells = dbt_history._cells_of_snapshot(keys, from_now, table.convention) %}
        {% for column in ['dbt_scd_id', 'dbt_updated_at'] %}
            {% do renewed.update({(said.get(column) or column) | lower: cells[column]}) %}
        {% endfor %}
    {% endif %}
    {% do return(renewed) %}
{% endmacro %}


{#
    For feature states, a time as the last transaction up to it; none for any other point or table.
#}
{% macro _transaction_at_time(to, table) %}
    {% if not table.get('namespace')
        or not modules.re.match('^[0-9]{4}-[0-9]{2}-[0-9]{2}', to | string) %}
        {% do return(none) %}
    {% endif %}
    {% do return(run_query(
        'select coalesce(max(`txn`), 0) from ' ~ dbt_history._states_until(
            dbt_history._quoted_relation(table.relation), table.namespace, to, 'rewind',
        )
    ).rows[0][0] | string) %}
{% endmacro %}


{# The condition of the features to rewind: those of `only`, on main. #}
{% macro _rewound_features(table, only) %}
    {% set columns = dbt_history._table_columns(table.relation) %}
    {% do return(
        dbt_history._key_filter(only, columns)
            ~ (" and coalesce(`branch`, 'main') = 'main'"
                if 'branch' in table.key | map('lower') else '')
    ) %}
{% endmacro %}


{#
    Refuses a point at which a feature existed whose state of then was not kept: it would be
    deleted. Features f and g, rewound to 4:

        txn        1          3             5          now
        history    on         off
        f          [ created -------------- replaced --------
        stored                              [ 5 ------------- created_txn 1
        g          [ created -------------- deleted           nothing is stored; the log shows it
#}
{% macro _refuse_unkept_states(tables, only, writes) %}
    {% set problems = [] %}
    {% for table in tables if table.namespace and not dbt_history._missing_columns(
        ['created_txn'], dbt_history._table_columns(table.relation),
    ) %}
        {% set rows = run_query(dbt_history._unkept_states_sql(
            dbt_history._quoted_relation(table.relation),
            dbt_history.as_of(table.relation, table.to, table.convention), table.to, table.key,
            dbt_history._rewound_features(table, only),
            dbt_history._deleted_without_history_sql(table, only, writes),
        )).rows %}
        {% do problems.append(
            table.name ~ ': ' ~ rows[0][1] ~ ' features, such as '
                ~ rows | map(attribute=0) | join(', ') ~ '; they are stored from transaction '
                ~ rows[0][2] ~ ' on'
        ) if rows %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind',
            'features existed then whose states were not kept, and would be deleted; nothing was'
                ~ ' done',
            got='\n    ' ~ problems | join('\n    '),
            way_out='rewind to that transaction or a later one, or other features with `only`',
        )) %}
    {% endif %}
{% endmacro %}


{#
    Up to five features that existed at `to` and have no state then: the key, how many there are,
    and from which transaction on all of them are stored. A later state of a feature created up to
    `to`, also a tombstone, shows it; `deleted` are those that left none.
#}
{% macro _unkept_states_sql(states, snapshot, to, key, where, deleted=none) %}
    {%- set keys = dbt_history._quoted(key) -%}
    {%- set matched = [] -%}
    {%- for name in keys -%}
        {%- do matched.append('later.' ~ name ~ ' <=> present.' ~ name) -%}
    {%- endfor -%}
    select
        to_json(struct({{ keys | join(', ') }})) as feature,
        count(*) over () as features,
        max(min(`txn`)) over () as stored_from
    from (
        select {{ keys | join(', ') }}, `txn`
        from {{ states }}
        where `txn` > {{ to }}L and `created_txn` <= {{ to }}L and ({{ where }})
        {%- if deleted %}

        union all

        {{ deleted }}
        {%- endif %}
    ) as later
    left anti join (
        select *
        from {{ snapshot }} as present
        where {{ where }}
    ) as present on {{ matched | join(' and ') }}
    group by {{ keys | join(', ') }}
    order by {{ keys | join(', ') }}
    limit 5
{%- endmacro %}


{#
    The features that a write without history may have deleted after `to`, and whose last write up
    to `to` is no deletion, by the log: the key, and that write as `txn`. None if every write has
    history, as far as the log and the marks say.
#}
{% macro _deleted_without_history_sql(table, only, writes) %}
    {% set log = dbt_history._table_name(writes) %}
    {% set facts = dbt_history._space_facts(table.relation) %}
    {% set has_column = not dbt_history._missing_columns(
        ['history'], dbt_history._table_columns(log),
    ) %}
    {% if not facts and not has_column %} {% do return(none) %} {% endif %}
    {% set keys, columns = [], [] %}
    {% for name in dbt_history._quoted(table.key) %}
        {% do keys.append(
            "coalesce(`branch`, 'main')" if name | lower == '`branch`' else name
        ) %}
        {% do columns.append(keys[-1] ~ ' as ' ~ name) %}
    {% endfor %}
    {% set is_off = "`history` = 'off'" if has_column
        else '(' ~ dbt_history._history_by_space(facts, table.key, '`txn`', "'on'")
            ~ " = 'off' or `txn` <= array_max("
            ~ dbt_history._removals_by_space(facts, table.key) ~ '))' %}
    {% set deletes = '`txn` > ' ~ table.to ~ 'L and `action` in '
        ~ "('DELETE', 'PURGE', 'WRITE') and " ~ is_off %}
    {%- set sql -%}
select {{ dbt_history._quoted(table.key) | join(', ') }}, `__deleted` as `txn`
        from (
            select
                {{ columns | join(', ') }},
                min(if({{ deletes }}, `txn`, null)) as `__deleted`,
                max_by(`action`, if(`txn` <= {{ table.to }}L, struct(`txn`, `position`), null))
                    as `__last`
            from {{ log }}
            where {{ dbt_history._rewound_features(table, only) }}
            group by {{ keys | join(', ') }}
        ) as logged
        where `__deleted` is not null and `__last` not in ('DELETE', 'PURGE')
    {%- endset -%}
    {% do return(sql) %}
{% endmacro %}


{#
    The last transaction of the log. Refused for all tables at once if one of them lacks writes of
    the features to rewind; writes of another table's space in the same log are none of them:

        edits    1 roads   2 pois   3 roads   4 pois
        roads    1                  3                  only: {space: roads} lacks nothing
#}
{% macro _end_of_rewound_log(tables, only, writes) %}
    {% set problems, found = [], namespace(end=none) %}
    {% for table in tables if table.namespace %}
        {% set head = dbt_history._head_of_log(
            writes, table.relation, dbt_history._rewound_features(table, only),
        ) %}
        {# The first one: the append notices what another writer has added since. #}
        {% set found.end = head.txn if found.end is none else found.end %}
        {% do problems.append(table.name ~ ': ' ~ head.ahead ~ ' writes that the states lack')
            if head.ahead %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind', 'the log is ahead of the states; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            way_out='run the model of the states first; if the writes are of the space of another'
                ~ ' table, rewind one table at a time and name its space: `only: {space: ...}`',
        )) %}
    {% endif %}
    {% do return(found.end) %}
{% endmacro %}


{#
    Feature states are rewound through their log: one transaction restores the earlier states; the
    next run of the model applies it. Returns the last transaction of the log, which was `end`.
#}
{% macro _rewind_features(table, only, said, end, dry_run) %}
    {% set columns = dbt_history._table_columns(table.relation) %}
    {% set payload = dbt_history._payload_of(
        columns, dbt_history._table_columns(dbt_history._table_name(said.writes)), table.key,
        said.payload,
    ) %}
    {% set features = dbt_history._features_of(columns, table.key, payload, said.json) %}
    {% set call = {
        'writes': dbt_history._table_name(said.writes),
        'states': dbt_history._quoted_relation(table.relation),
        'snapshot': dbt_history.as_of(table.relation, table.to, table.convention),
        'app_id': said.app_id, 'key': table.key, 'payload': features.payload,
        'json': features.json, 'author': said.author,
        'message': said.message or 'rewind to ' ~ table.to, 'at': none,
        'where': dbt_history._rewound_features(table, only), 'is_resync': false,
        'head': end,
    } %}
    {% set parts = dbt_history._resync_sql(call, end + 1) %}
    {% set number = run_query(
        'select count(*) from (' ~ parts.select ~ ') as writes'
    ).rows[0][0] | int %}
    {% do dbt_history._refuse_too_many_writes(number, 'rewind') %}
    {% if number and not dry_run %}
        {% do dbt_history._append_writes(
            call.writes, end, parts.insert ~ '\n' ~ parts.select, 'rewind',
        ) %}
        {% do dbt_history._add_mark(
            table, 'rewind', instant=table.to, author=said.author, reason=said.message,
        ) %}
    {% endif %}
    {% do log(
        'dbt_history: ' ~ table.name ~ (' would be rewound' if dry_run else ' is rewound') ~ ' to '
            ~ table.to ~ ': ' ~ number ~ ' writes'
        ~ (
            ', transaction ' ~ (end + 1) ~ ' of the log; run the model'
                if number and not dry_run else ''
        ),
        info=true
    ) %}
    {% do return(end + 1 if number and not dry_run else end) %}
{% endmacro %}
