{#
    The tables of an operation that reads the past, of all kinds: version tables, as `_maintained`
    returns them, then mirrors and event tables, which have `log` and `main_columns` besides; their
    axis is the time of the changes. `all`: every history table of the project that has been built.
#}
{% macro _tables_of_all_kinds(table, convention, key, caller_name) %}
    {% set is_all = table is string and table == 'all' %}
    {% set logs, others, problems = [], [], [] %}
    {% for name in (dbt_history._named_logs() if is_all else dbt_history._named_tables(table)) %}
        {% set node = dbt_history._node_named(name, caller_name) %}
        {% set relation = dbt_history._mirror_relation(name, caller_name) %}
        {% set is_log = (node.config if node else {}).get('materialized') == 'history_append' %}
        {% set log = dbt_history._recorded_log(relation)
            if relation is not none and (is_log or node is none and convention is none) else none %}
        {% if log is not none %}
            {% do logs.append(dbt_history._log_as_table(name, node, relation, log)) %}
        {% elif is_all %}
            {% do dbt_history._log_left_out(name, relation) %}
        {% elif is_log %}
            {% do problems.append(name ~ ': ' ~ dbt_history._not_a_log(relation)) %}
        {% else %}
            {% do others.append(name) %}
        {% endif %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'not every table can be used; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
            expected='version tables, mirrors (hx_rows) and event tables (event_rows)',
        )) %}
    {% elif is_all or others or not logs %}
        {% set others = dbt_history._maintained(
            'all' if is_all else others, convention, key, caller_name, or_none=logs | length > 0,
        ) %}
    {% endif %}
    {% do return(others + logs) %}
{% endmacro %}


{% macro _named_logs() %}
    {% set nodes = [] %}
    {% for node in graph.nodes.values() if node.resource_type == 'model'
        and node.config.get('materialized') == 'history_append' %}
        {% do nodes.append(node) %}
    {% endfor %}
    {% do return(dbt_history._unmistakable_names(nodes) | sort) %}
{% endmacro %}


{% macro _not_a_log(relation) %}
    {% do return(
        'the table does not exist yet' if relation is none or relation.is_view
            else 'it is neither a mirror nor an event table'
    ) %}
{% endmacro %}


{% macro _log_left_out(name, relation) %}
    {% do log(
        'dbt_history: ' ~ name ~ ' is left out: ' ~ dbt_history._not_a_log(relation), info=true,
    ) %}
{% endmacro %}


{# `names`: all columns, in lower case. `main`: the name of the main table. #}
{% macro _log_as_table(name, node, relation, log) %}
    {% do log.update({
        'names': dbt_history._table_columns(relation) | map(attribute='name') | map('lower') | list,
    }) %}
    {# A mirror keeps its id when its main table is renamed. #}
    {% set sources = [] %}
    {% for source in log.sources %}
        {% set identifier = source.split('.')[-1].strip('`') %}
        {% do sources.append({'name': source, 'identifier': identifier})
            if log.kind == 'events' or log.sources | length == 1
                or identifier == log.id[:-6] | lower %}
    {% endfor %}
    {% do return({
        'name': name, 'relation': relation, 'node': node, 'key': log.key, 'log': log,
        'convention': dbt_history.convention({'start': '__valid_from', 'end': '__valid_to'}),
        'main_columns': dbt_history._main_columns_of(log, relation),
        'main': log.id[:-6] if log.kind == 'hx' and (
            sources | length != 1 or sources[0].identifier == log.id[:-6] | lower
        ) else sources[0].identifier if sources | length == 1 else relation.identifier,
        'source': sources[0].name if sources | length == 1 else none,
    }) %}
{% endmacro %}


{#
    Why a mirror or an event table does not know the state of its main table at an instant: a list,
    empty if it knows it. `instant`: text of the axis.

        populated       w1             frame [c1, d]                       now
        |   changes     |  not read one by one  |   changes                |
        ?               known up to c1          ?   known again from d     ?
        '- before: the rows that existed then were not recorded            '- after now
#}
{% macro _unknown_at(table, instant) %}
    {% set reasons = [] %}
    {% set micros = run_query(
        'select ' ~ dbt_history._axis_number(
            dbt_history._literal(instant, table.convention), table.convention,
        )
    ).rows[0][0] | int %}
    {% set watermark = table.log.watermarks.get(table.source) or {} %}
    {% set begins = watermark.get('populated') %}
    {% set begins = begins if begins is not none else run_query(
        'select unix_micros(min(' ~ dbt_history._time_of_log(table.log) ~ ')) from '
            ~ dbt_history._quoted_relation(table.relation)
    ).rows[0][0] %}
    {% if begins is none or micros < begins | int %}
        {% do reasons.append(
            instant ~ ' is before its first rows'
                ~ (', ' ~ dbt_history._axis_text(begins, table.convention) if begins is not none
                    else ': it has none')
        ) %}
    {% endif %}
    {% set frames = watermark.get('frames', []) + dbt_history._suspended_frames(table) %}
    {% for frame in frames
        if frame[0] <= micros and (frame[1] is none or micros < frame[1]) %}
        {% set since = dbt_history._axis_text(frame[0], table.convention) %}
        {% do reasons.append(
            instant ~ ' is after ' ~ since ~ ', when it was suspended; points after resume_history'
                ~ ' are known again'
            if frame[1] is none else
            instant ~ ' is between ' ~ since ~ ' and '
                ~ dbt_history._axis_text(frame[1], table.convention)
            ~ ', where the changes were not read one by one'
        ) %}
    {% endfor %}
    {# Only the newest frames are kept. #}
    {% if watermark.get('frames', []) | length >= 20 and micros < watermark.frames[0][0] %}
        {% do reasons.append(
            instant ~ ' is before ' ~ dbt_history._axis_text(
                watermark.frames[0][0], table.convention,
            ) ~ ', and from where it was read one by one before that is not recorded'
        ) %}
    {% endif %}
    {% if micros > run_query('select unix_micros(current_timestamp())').rows[0][0] | int %}
        {% do reasons.append(instant ~ ' is in the future') %}
    {% endif %}
    {% do return(reasons | unique | list) %}
{% endmacro %}


{#
    From each suspension to its resumption, in microseconds; the end of one that is in force is
    none. The marks are asked only about the time before the table's log: a RESTORE, or a table that
    was made again, has undone what they say.

        version   4      5          6              7      8
                  run    suspend    restore to 4   run    resume_history: nothing to resume
        marks            suspension                       resumption
        frames    none: from 4 on the changes were read one by one
#}
{% macro _suspended_frames(table) %}
    {% set state = namespace(since=none) %}
    {% set frames = [] %}
    {% set marks = dbt_history._control_marks(table.relation) %}
    {% for control in (dbt_history._controls(table.relation, marks)
        if marks or table.log.is_suspended else []) %}
        {% if control.is_suspended %}
            {% set state.since = state.since if state.since is not none else control.micros %}
        {% elif state.since is not none %}
            {% do frames.append([state.since, control.micros]) %}
            {% set state.since = none %}
        {% endif %}
    {% endfor %}
    {# Its commit is not in the log of a table that was emptied meanwhile. #}
    {% set since = state.since or (marks[-1][1] | int if marks else 0) %}
    {% do frames.append([since, none]) if table.log.is_suspended %}
    {% do return(frames) %}
{% endmacro %}


{#
    The suspensions and resumptions that the table's log has and no RESTORE undid, and those of the
    marks from before the log's oldest entry, oldest first: {'is_suspended', 'micros'}. There are
    none before the table was made, or emptied.
#}
{% macro _controls(relation, marks) %}
    {% set entries = dbt_history._history_entries(relation) %}
    {% set walk = namespace(resume_at=none, is_whole=false) %}
    {% set undone, found, controls = [], [], [] %}
    {% for entry in entries if not walk.is_whole
        and (walk.resume_at is none or entry.version <= walk.resume_at) %}
        {% if entry.operation == 'RESTORE' %}
            {% set walk.resume_at = dbt_history._restored_version(entry) %}
            {% do undone.append([walk.resume_at, entry.version]) %}
        {% elif (entry.record or {}).get('control') %}
            {% do found.append(entry) %}
        {% endif %}
        {# On Iceberg an UPDATE may look like a reset. #}
        {% set walk.is_whole = entry.get('is_first', false) if relation.is_iceberg
            else entry.version == 0 or dbt_history._is_reset(entry) %}
    {% endfor %}
    {% set times = dbt_history._micros_of_all(found + entries[-1:]) if entries else {} %}
    {% for mark in marks if not walk.is_whole
        and (not entries or mark[1] | int < times[entries[-1].version]) %}
        {% set state = namespace(is_undone=false) %}
        {% for versions in undone
            if mark[2] is not none and versions[0] < mark[2] | int < versions[1] %}
            {% set state.is_undone = true %}
        {% endfor %}
        {% do controls.append({'is_suspended': mark[0] == 'suspension', 'micros': mark[1] | int})
            if not state.is_undone %}
    {% endfor %}
    {% for entry in found | reverse %}
        {% do controls.append({
            'is_suspended': entry.record.control.suspended, 'micros': times[entry.version],
        }) %}
    {% endfor %}
    {% do return(controls) %}
{% endmacro %}


{# Logs that have not read all commits of their main table: their latest state may still change. #}
{% macro _log_unread(table) %}
    {% set unread = dbt_history._unread_commits(table) %}
    {% do log(
        'dbt_history: ' ~ table.name ~ ' has not read ' ~ unread ~ '; run it to complete the state',
        info=true,
    ) if unread is not none %}
{% endmacro %}


{#
    What a log has not read of its main table, as text; none if it has read everything. A commit
    that changed the columns counts: the log follows it, and the state read has the columns before.
#}
{% macro _unread_commits(table) %}
    {% set watermark = table.log.watermarks.get(table.source) or {} %}
    {% do return(dbt_history._unread_commits_of(
        {'watermarks': {table.source: watermark}}, dbt_history._operations_without_change(),
    )) %}
{% endmacro %}


{#
    The rows of the main table at one instant, from its mirror or event table: a sub-query with the
    main table's columns, each under its present name; with `mod_columns` also `mod_time` and
    `mod_user`, when and by whom the row was last changed. `version`: that of the log, by default
    the newest one.

        mirror     a 1 (10:00 lee)     a 2 (11:00 kim)     b 1 (11:30 kim, deleted)
        at 11:45   a 2                 mod_time 11:00, mod_user kim; b does not exist
#}
{% macro _main_rows(table, at, mod_columns=false, version=none) %}
    {%- set cells = [] -%}
    {%- for name in table.main_columns -%}
        {%- do cells.append(
            dbt_history._renamed_cell(table.log, name) ~ ' as ' ~ dbt_history._quote(name)
        ) -%}
    {%- endfor -%}
    {%- if mod_columns -%}
        {%- do cells.extend(
            ['`mod_time`', '`mod_user`'] if table.log.kind == 'hx'
                else ['`_hist_time` as `mod_time`', '`_hist_user` as `mod_user`']
        ) -%}
    {%- endif -%}
    {%- do return(
        '(\n    select ' ~ cells | join(', ') ~ '\n    from '
            ~ dbt_history.as_of(
                table.relation if version is none
                    else dbt_history._at_version(table.relation, version),
                at, dbt_history._reading_of_log(table.log),
            )
        ~ ' as log_rows\n)'
    ) -%}
{% endmacro %}


{# The columns of the main table that a log holds, in its order, each under its present name. #}
{% macro _main_columns_of(log, relation) %}
    {% set own = ['_hist_trans_id', '_hist_event', '_hist_user', '_hist_time']
        if log.kind == 'events'
        else ['mod_time', 'mod_user', 'deleted', log.id | lower]
            + log.links | map('lower') | list %}
    {% set former = log.renamed.values() | sum(start=[]) | map('lower')
        | reject('in', log.renamed.keys() | list) | list %}
    {% set names = [] %}
    {% for column in dbt_history._table_columns(relation) if column.name | lower not in own %}
        {% set name = dbt_history._main_name(column.name, dbt_history._own_columns(log)) %}
        {% do names.append(name) if name | lower not in former %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{# Sets the name of each table's view, and refuses what cannot be shown. #}
{% macro _check_views(tables, schema, at, mod_columns) %}
    {% set problems = [] %}
    {% set names = {} %}
    {% for table in tables %}
        {% do table.update({'view': table.main if table.log else table.relation.identifier}) %}
        {% set others = names.setdefault(table.view | lower, []) %}
        {% do others.append(table.name) %}
        {% if others | length > 1 %}
            {% do problems.append(
                others | join(', ') ~ ' would have the same view ' ~ table.view
                    ~ ': name the tables'
            ) %}
        {% endif %}
        {% set there = load_relation(
            api.Relation.create(database=none, schema=schema, identifier=table.view)
        ) %}
        {% do problems.append(
            schema ~ '.' ~ table.view ~ ' is there already, and is no view'
        ) if there is not none and not there.is_view %}
        {% if table.relation.schema | lower == schema | lower %}
            {% do problems.append(
                table.name ~ ' lies in the schema ' ~ schema ~ ' itself, where a view could replace'
                    ~ ' its own table'
            ) %}
        {% elif table.log and table.source
            and dbt_history._relation_of(table.source).schema | lower == schema | lower %}
            {% do problems.append(
                table.source ~ ', the main table of ' ~ table.name ~ ', lies in the schema '
                    ~ schema ~ ': a view would replace it'
            ) %}
        {% endif %}
        {% set has_both = table.log
            and table.main_columns | map('lower') | select('in', ['mod_time', 'mod_user']) | list %}
        {% if mod_columns and has_both %}
            {% do problems.append(
                table.name ~ ': its main table has a column ' ~ has_both | join(', ')
                    ~ ' of its own'
            ) %}
        {% endif %}
        {# Of a version table, too: a point that is NULL would make an empty view. #}
        {% set is_evaluated = at is not none and at != 'now'
            and (table.log or dbt_history._tag_of(at) is none) %}
        {% set point = dbt_history._evaluated_point(at, table, 'create_point_in_time')
            if is_evaluated else none %}
        {% for reason in (dbt_history._unknown_at(table, point)
            if table.log and point is not none else []) %}
            {% do problems.append(table.name ~ ': ' ~ reason) %}
        {% endfor %}
    {% endfor %}
    {% do problems.append('at has no value') if at is none %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'create_point_in_time', 'these tables cannot be shown together; nothing was made',
            got='\n    ' ~ problems | join('\n    '),
            expected='another schema, and tables that know the point',
        )) %}
    {% endif %}
{% endmacro %}
