{#
    The newest known state of the source according to the model's own table: the source's columns,
    one row per live key. `layout` of a log: `order` (the column that finds the newest row of a
    key, or several), `time` (the column with the time of a change), `rows` (conditions on a row to
    count), `is_alive` (a condition on the newest row), `reserved` (names of the log's own columns,
    see `_stored_name`); or `is_source`: the source at the version last taken. Without `layout`: the
    open rows of a version table, or a table with the columns that `changes` returns.
#}
{% macro _known_state(capture) %}
    {%- set own = dbt_history._quoted_relation(this) -%}
    {%- set there = dbt_history._table_columns(this) | map(
        attribute='name'
    ) | map('lower') | list -%}
    {%- set cells = [] -%}
    {%- for column in capture.diff.state_columns -%}
        {%- do cells.append(
            column.cell ~ ' as ' ~ dbt_history._quote(column.name) if column.cell
                else dbt_history._quote(column.source or column.name)
        ) -%}
    {%- endfor -%}
    {%- set cells = cells | join(', ') or '1' -%}
    {%- set layout = capture.layout -%}
    {%- if layout is none and capture.taken.other_sources -%}
        {%- do dbt_history._refuse_mixed_state(
            capture.caller_name, [capture.source] + capture.taken.other_sources,
        ) -%}
    {%- endif -%}
    {%- if (layout or {}).get('is_source') -%}
        {%- do return('select ' ~ cells ~ ' from ' ~ dbt_history._version_taken(capture)) -%}
    {%- elif dbt_history._is_of_versions(capture) -%}
        {%- set convention = dbt_history._history_settings(
            model, capture.caller_name,
        ).convention -%}
        {%- do return(
            'select ' ~ cells ~ ' from ' ~ own ~ ' where ' ~ dbt_history._is_open(convention)
        ) -%}
    {%- elif layout is none -%}
        {%- set layout = dbt_history._layout_of_changes(capture, there) -%}
    {%- endif -%}
    {%- set keys = dbt_history._quoted(capture.key) | join(', ') -%}
    {%- do return(
        'select ' ~ cells ~ ' from (select *, row_number() over (partition by ' ~ keys
            ~ ' order by '
        ~ dbt_history._quoted(
            [layout.order] if layout.order is string else layout.order
        ) | join(' desc, ')
            ~ ' desc) as `__place` from ' ~ own ~ ' where ' ~ layout['rows']
        ~ ') as `newest` where `__place` = 1 and ' ~ layout.is_alive
    ) -%}
{% endmacro %}


{#
    The layout of a model that stores the result of `changes` unchanged. Rows from before the table
    got `_change_type` do not say whether they are deletions. Versions of another source may be
    lower than those in the log: only the times tell then which row is the newest.
#}
{% macro _layout_of_changes(capture, there) %}
    {% set begins_anew = 'return these columns in the SELECT and begin with the rows that the'
        ~ ' source has then: give the model another alias, or run it once with --full-refresh'
        ~ ' (meta.history.allow_full_refresh: true)' %}
    {% set needed = ['_change_type', '_commit_version']
        + (['_commit_timestamp'] if capture.taken.get('replaced') else []) %}
    {% if needed | reject('in', there) | list %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name,
            'the model\'s table does not record which rows of the source it has taken',
            got='a difference (method diff, or no feed that can be read)',
            expected='a table with ' ~ needed | join(', ') ~ ', of one source; or hx_rows,'
                ~ ' event_rows, batch_rows',
            node=model.unique_id,
            way_out='read a table that has versions'
                if (capture.layout or {}).get('is_source') else begins_anew,
        )) %}
    {% endif %}
    {% set unknown = dbt_history._string_literal(dbt_history._message(
        capture.caller_name,
        'the model\'s table has rows without _change_type; no row was written',
        expected='a table that has _change_type since its first row, for a difference (method diff,'
            ~ ' or no feed that can be read)',
        node=model.unique_id, way_out=begins_anew,
    )) | replace('\n', '\\n') %}
    {% do return({
        'order': ['_commit_timestamp', '_commit_version'] if '_commit_timestamp' in there
            else '_commit_version',
        'rows': 'if(`_change_type` is null, raise_error(' ~ unknown
            ~ "), `_change_type` <> 'update_preimage')",
        'is_alive': "`_change_type` <> 'delete'",
    }) %}
{% endmacro %}


{#
    Whether there is a state to compare with: not for a source that the model has just added to
    others. One that replaces them has no others (`_take_over_replaced`).
#}
{% macro _has_state(capture) %}
    {% set taken, layout = capture.taken, capture.layout %}
    {% if not taken.has_rows or taken.watermark is not none %}
        {% do return(taken.has_rows) %}
    {% endif %}
    {% do return(
        not layout.get('is_source') if layout is not none else not taken.other_sources
    ) %}
{% endmacro %}


{#
    The columns of the capture: those of the source at the version taken, then those that only an
    earlier part of the feed or the compared version has. Records the columns of each part in it.
#}
{% macro _captured_columns(capture) %}
    {% set head = capture.head %}
    {% if not head.is_delta or head.version is none %}
        {% set columns = dbt_history._table_columns(capture.relation) %}
    {% else %}
        {% set columns = dbt_history._columns_at(capture, head.version) %}
    {% endif %}
    {% do capture.update({'head_columns': columns | list}) %}
    {% set columns = columns | list %}
    {% set known = columns | map(attribute='name') | map('lower') | list %}
    {% for part in capture.segments %}
        {% set there = dbt_history._columns_of_part(capture, part) %}
        {% do part.update({'columns': there}) %}
        {% for column in there if column.name | lower not in known %}
            {% do columns.append(column) %}{% do known.append(column.name | lower) %}
        {% endfor %}
    {% endfor %}
    {% set diff = capture.diff %}
    {% if diff is not none %}
        {% set is_head = diff.version is none or diff.version == head.version %}
        {% set there = columns | list if is_head
            else dbt_history._columns_at(capture, diff.version) %}
        {% do diff.update({'columns': there}) %}
        {# A resumption has columns that were renamed or dropped since then. #}
        {% for column in there if column.name | lower not in known %}
            {% do columns.append(column) %}{% do known.append(column.name | lower) %}
        {% endfor %}
        {% if diff.state %}
            {% do diff.update({'state_columns': dbt_history._state_columns(capture, known)}) %}
        {% endif %}
    {% endif %}
    {% do return(dbt_history._with_fields(
        capture, dbt_history._with_widest_types(capture, columns),
    )) %}
{% endmacro %}


{#
    The columns of a part of the feed. A compared one gets `former`, the columns before it: those
    that are still there after it, and those that are there again later, which are NULL after it.
#}
{% macro _columns_of_part(capture, part) %}
    {% if not part.is_compared %}
        {% set there = dbt_history._query_columns(
            'select * from ' ~ dbt_history._table_changes(capture, part)
        ) %}
        {% do return(dbt_history._with_fixed_names(capture, there[:-3], part.to)) %}
    {% endif %}
    {% set columns = dbt_history._columns_at(capture, part.to) %}
    {% set there = columns | map(attribute='name') | map('lower') | list %}
    {% set later = capture.head_columns | map(attribute='name') | map('lower') | list %}
    {% set former = [] %}
    {% for column in dbt_history._columns_at(capture, part['from'] - 1)
        if column.name | lower in there + later %}
        {% do former.append(column) %}
        {% do columns.append({'name': column.name, 'type': 'void'})
            if column.name | lower not in there %}
    {% endfor %}
    {% do part.update({'former': former}) %}
    {% do return(columns) %}
{% endmacro %}


{#
    The columns of the known state, under the names that they have in the compared version; `source`
    is the name to read such a column by, or `cell` its SQL. `known`: the names of all columns of
    the capture, in lower case.

        log        id 1, v a          written before v was renamed to w
                   id 2, w b          written later
        state      coalesce(w, v)     compared with w of the source
#}
{% macro _state_columns(capture, known) %}
    {% set layout = capture.layout or {} %}
    {% if layout.get('is_source') %}
        {% do return(dbt_history._state_columns_of_source(capture)) %}
    {% endif %}
    {% set stored = dbt_history._table_columns(this) %}
    {% set log = {'renamed': {}} if dbt_history._is_of_versions(capture)
        else dbt_history._log_of_state(capture, stored) %}
    {% set there = capture.diff.columns | map(attribute='name') | map('lower') | list %}
    {% set found, names = [], log.renamed.values() | sum(start=[]) | reject('in', there) | list %}
    {% for column in capture.diff.columns if column.name | lower in log.renamed %}
        {% do names.append(column.name | lower) %}
        {% set column = dbt_history._renamed_state(log, column.name) %}
        {% do found.append(column) if column is not none %}
    {% endfor %}
    {% for column in stored %}
        {% set name = dbt_history._main_name(column.name, layout.get('reserved', [])) %}
        {% if name is not none and name | lower in known and name | lower not in names %}
            {% do found.append(
                column if name == column.name
                    else dict(column, name=name, source=column.name)
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The model's own log as `_renamed_cells` reads it; `names`: the types of its columns by name. A
    table of several sources may have a name for a column of each.
#}
{% macro _log_of_state(capture, stored) %}
    {% set layout = capture.layout or {} %}
    {% set kinds = {'_hist_time': 'events', 'mod_time': 'hx'} %}
    {% set log = {
        'kind': kinds.get(layout.get('time'), 'changes'), 'id': layout.get('order'),
        'time': layout.get('time', '_commit_timestamp'),
        'names': dbt_history._types_by_name(stored), 'renamed': {},
    } %}
    {% do log.update(
        {} if capture.taken.other_sources else dbt_history._former_names(capture, true)
    ) %}
    {# The rows of a log of `changes` need not have their time. #}
    {% do log.update({'reused': []}) if log.names.get(log.time) != 'timestamp' %}
    {% do return(log) %}
{% endmacro %}


{# A column that had other names, as its values under all of them; none if the log has none. #}
{% macro _renamed_state(log, name) %}
    {% set parts = [] %}
    {% for cell in dbt_history._renamed_cells(log, name) if cell.stored in log.names %}
        {% do parts.append({'sql': cell.sql, 'type': log.names[cell.stored]}) %}
    {% endfor %}
    {% if not parts %}
        {% do return(none) %}
    {% endif %}
    {% set state = namespace(type=parts[-1].type) %}
    {% for part in parts | reverse %}
        {% set state.type = dbt_history._with_more_fields(state.type, part.type)
            if not dbt_history._type_fits(part.type, state.type) else state.type %}
    {% endfor %}
    {% set cells = [] %}
    {% for part in parts %}
        {% do cells.append(dbt_history._converted(part.sql, part.type, state.type)) %}
    {% endfor %}
    {% do return({
        'name': name, 'type': state.type,
        'cell': 'coalesce(' ~ cells | join(', ') ~ ')' if cells | length > 1 else cells[0],
    }) %}
{% endmacro %}


{#
    The columns that the table does not get, with `on_schema_change: ignore`: in each difference
    they would differ from NULL. The materialization history names its own: `_columns_not_stored`.
#}
{% macro _columns_not_kept(capture) %}
    {% set layout = capture.layout or {} %}
    {% if not (capture.diff or {}).get('state') or layout.get('is_source')
        or layout.get('is_versions')
        or dbt_history._on_schema_change(model) != 'ignore' %}
        {% do return([]) %}
    {% endif %}
    {% set stored = dbt_history._table_columns(this) | map(attribute='name') | map('lower')
        | list %}
    {% set names = [] %}
    {% for name in capture.columns | map(attribute='name')
        if dbt_history._stored_name(name, layout.get('reserved', [])) | lower not in stored %}
        {% do names.append(name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    The columns of the version last taken, under the names that they have in the compared one:

        renames     v to w, restored       v to t, x to v, t to x      x dropped, v to x
        v is        v                      x                           x; the dropped x is left out
#}
{% macro _state_columns_of_source(capture) %}
    {% set stored = dbt_history._columns_at(capture, capture.taken.watermark.version) %}
    {% set there = capture.diff.columns | map(attribute='name') | map('lower') | list %}
    {% set found, rest, names = [], [], [] %}
    {% for column in stored %}
        {% set name = dbt_history._name_after(capture, column.name, capture.diff.version) %}
        {% if name | lower in there %}
            {% do names.append(name | lower) %}
            {% do found.append(
                column if name | lower == column.name | lower
                    else dict(column, name=name, source=column.source or column.name)
            ) %}
        {% else %}
            {% do rest.append(column) %}
        {% endif %}
    {% endfor %}
    {% for column in rest if column.name | lower in there and column.name | lower not in names %}
        {% do found.append(column) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The columns with the widest type of number that a part of the rows has: in the present type of
    the source, a value from before it was narrowed would be another one.

        state of the log      v bigint    3000000000
        source made again     v int                      captured as bigint
#}
{% macro _with_widest_types(capture, columns) %}
    {% set diff = capture.diff or {} %}
    {% set parts = capture.segments | map(attribute='columns') | list
        + capture.segments | selectattr('former', 'defined') | map(attribute='former') | list
        + [diff.get('columns', []), diff.get('state_columns', [])] %}
    {% set types = {} %}
    {% for column in columns + parts | sum(start=[]) %}
        {% set name = column.name | lower %}
        {% set type = types.get(name, column.type) %}
        {% set is_wider = modules.re.match('(tinyint|smallint|int|float|decimal)', type | lower)
            and dbt_history._type_fits(type, column.type) %}
        {% do types.update({name: column.type if is_wider else type}) %}
    {% endfor %}
    {% set found = [] %}
    {% for column in columns %}
        {% do found.append(dict(column, type=types[column.name | lower])) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The columns with all fields of structs that the model's own table, an earlier part of the feed
    or the compared version has. The fields of the table come first, in its order. For a version
    table a column has its type without the table's fields in `said`, if it lacks some.
#}
{% macro _with_fields(capture, columns) %}
    {% if 'struct<' not in (columns | map(attribute='type') | join(' ') | lower) %}
        {% do return(columns) %}
    {% endif %}
    {% set parts = [columns] + capture.segments | map(attribute='columns') | list %}
    {% if capture.diff is not none %}
        {% do parts.append(capture.diff.columns) %}
    {% endif %}
    {% set said = {} %}
    {% for column in parts | sum(start=[]) %}
        {% set name = column.name | lower %}
        {% if dbt_history._is_same_kind(said.get(name, ''), column.type) %}
            {% do said.update({name: dbt_history._with_more_fields(said[name], column.type)}) %}
        {% elif name not in said %}
            {% do said.update({name: column.type}) %}
        {% endif %}
    {% endfor %}
    {% set stored = {} %}
    {% for column in (dbt_history._table_columns(this) if capture.taken.has_rows else []) %}
        {% set name = dbt_history._main_name(
            column.name, (capture.layout or {}).get('reserved', []),
        ) %}
        {% do stored.update({name | string | lower: column.type}) %}
    {% endfor %}
    {% set renamed = {} %}
    {% for column in (capture.diff or {}).get('state_columns', []) if column.cell %}
        {% do renamed.update({column.name | lower: column.type}) %}
    {% endfor %}
    {% set found = [] %}
    {% for column in columns %}
        {% set name = column.name | lower %}
        {% set own = said[name] %}
        {% set type = dbt_history._with_more_fields(stored.get(name, ''), own) %}
        {% if dbt_history._is_same_kind(renamed.get(name, ''), type) %}
            {# The types of `type`, in its order, then the fields that only the other has. #}
            {% set type = dbt_history._with_more_fields(
                type, dbt_history._with_more_fields(renamed[name], type),
            ) %}
        {% endif %}
        {% set is_said = dbt_history._is_of_versions(capture)
            and dbt_history._lacks_fields(own, type) %}
        {% do found.append(
            dict(column, type=type, **({'said': own} if is_said else {}))
                if dbt_history._is_same_kind(type, column.type) else column
        ) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# Whether the model's own table has versions; else it is a log. #}
{% macro _is_of_versions(capture) %}
    {% do return(
        model.config.get('materialized') != 'history_append' if capture.layout is none
            else capture.layout.get('is_versions', false)
    ) %}
{% endmacro %}


{% macro _columns_at(capture, version) %}
    {% set columns = dbt_history._query_columns(
        'select * from ' ~ capture.table ~ ' version as of ' ~ version
    ) %}
    {% do return(dbt_history._with_fixed_names(capture, columns, version)) %}
{% endmacro %}


{# A column's name as the source spells it. #}
{% macro _column_of(capture, name) %}
    {% for column in capture.columns if column.name | lower == name | lower %}
        {% do return(column.name) %}
    {% endfor %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        capture.caller_name, 'the source has no column ' ~ name,
        got=capture.columns | map(attribute='name') | join(', '),
        expected='a column of ' ~ capture.relation, node=model.unique_id,
    )) %}
{% endmacro %}
