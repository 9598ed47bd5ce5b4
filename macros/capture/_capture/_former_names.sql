{#
    What the records of a log say of renamed columns: {'renamed', 'until', 'reused'}, or {} if none
    was renamed. `renamed`: the former names of each column, newest first; `until`: the times up to
    which it had them, in microseconds; a former name '' represents no column. `reused`: the names
    that belong to different columns at different times. All by names in lower case.

        main      v = a     v renamed to w at t1     w = b     v added, v = c
        log       v a                                w b       w b, v c
        renamed             {w: [v]}                           {w: [v], v: ['']}, v is reused
        until               {w: [t1]}                          {w: [t1], v: [t1]}

    A key column has one name in all rows. With `of_difference` the names are those of the version
    that a difference compares, after which the feed may have renamed columns again.
#}
{% macro _former_names(capture, of_difference=false) %}
    {% set about = capture.taken.about or {} %}
    {% set about = about.get('hx') or about.get('events') or about.get('changes') or {} %}
    {% set former = {
        'renamed': {}, 'until': dict(about.get('until', {})),
        'reused': about.get('reused', []) | list,
    } %}
    {% for name, names in about.get('renamed', {}).items() %}
        {% do former.renamed.update({name | lower: names | map('lower') | list}) %}
    {% endfor %}
    {% do dbt_history._add_renames(capture, former, of_difference)
        if capture.watermark is not none %}
    {% for name in capture.key %}{% do former.renamed.pop(name | lower, none) %}{% endfor %}
    {% do return(former if former.renamed else {}) %}
{% endmacro %}


{#
    Adds the renames among the changes of this run, and the former names that columns of this run
    have again. A column that gets back a name of its own shares it with no other.
#}
{% macro _add_renames(capture, former, of_difference) %}
    {% set version = capture.diff.version if of_difference else capture.head.version %}
    {% set renames = [] %}
    {% for rename in capture.renames | reverse if rename.version <= (version or 0) %}
        {% do renames.append(rename) %}
    {% endfor %}
    {% set stored = [] %}
    {% for column in (dbt_history._table_columns(this) if renames else []) %}
        {% do stored.append(dbt_history._main_name(
            column.name, (capture.layout or {}).get('reserved', []),
        ) | string | lower) %}
    {% endfor %}
    {% set left_at = {} %}
    {% for rename in renames if rename.old | lower != rename.new | lower %}
        {% set old, new = rename.old | lower, rename.new | lower %}
        {% do dbt_history._take_former_name(former, old) %}
        {% set names = [old] + former.renamed.pop(old, []) %}
        {% set until = [dbt_history._version_micros(capture, rename.version)]
            + former.until.pop(old, []) %}
        {% do former.reused.append(new)
            if new in stored and new not in names + former.reused %}
        {% do former.renamed.update({new: names}) %}
        {% do former.until.update({new: until}) %}
        {% do stored.extend([old, new]) %}
        {% do left_at.update({old: rename.version}) %}
    {% endfor %}
    {% set there = (capture.diff.columns if of_difference else capture.head_columns)
        | map(attribute='name') | map('lower') | list %}
    {% for name in there %}
        {% do dbt_history._take_former_name(former, name, there) %}
    {% endfor %}
    {% for part in ([] if of_difference else capture.segments) %}
        {% for name in part.columns | map(attribute='name') | map('lower')
            if part['from'] >= left_at.get(name, 0) %}
            {% do dbt_history._take_former_name(former, name) %}
        {% endfor %}
    {% endfor %}
{% endmacro %}


{#
    A column with a former name of another one begins where that one left the name. If `there`, the
    columns of the source, does not have the other one any more, it got its name back: by a RESTORE,
    or because the table was made again.
#}
{% macro _take_former_name(former, name, there=none) %}
    {% set left = [] %}
    {% for column, names in former.renamed.items() if name not in former.renamed %}
        {% set until = former.until.get(column, []) + [0] * names | length %}
        {% for one in names %}
            {% do left.append([until[loop.index0] or 0, column]) if one == name %}
        {% endfor %}
    {% endfor %}
    {% if not left %}
        {% do return(none) %}
    {% endif %}
    {% set since, column = left | sort | last %}
    {% if there is not none and column not in there %}
        {% do former.renamed.update({name: [column] + former.renamed.pop(column)}) %}
        {% do former.until.update({name: [none] + former.until.pop(column, [])}) %}
    {% else %}
        {% do former.renamed.update({name: ['']}) %}
        {% do former.until.update({name: [since]}) %}
        {% do former.reused.append(name) if name not in former.reused %}
    {% endif %}
{% endmacro %}


{#
    SQL: a column of the main table in its mirror or event table, under whichever of its names has a
    value in the row; a name that other columns have had, too, counts only in its time. `prefix` is
    a table alias with its dot, or ''.

        column w     v, then w from t1     coalesce(w, v)
        v reused     v is w's until t1     coalesce(w, if(time < t1, v, null))
#}
{% macro _renamed_cell(mirror, name, prefix='') %}
    {%- set cells = [] -%}
    {%- for cell in dbt_history._renamed_cells(mirror, name, prefix) -%}
        {%- do cells.append(cell.sql) if loop.first or cell.stored in mirror.names -%}
    {%- endfor -%}
    {%- do return('coalesce(' ~ cells | join(', ') ~ ')' if cells | length > 1 else cells[0]) -%}
{% endmacro %}


{# The parts of that expression, newest name first: {'stored': the name in lower case, 'sql'}. #}
{% macro _renamed_cells(mirror, name, prefix='') %}
    {%- set own = dbt_history._own_columns(mirror) -%}
    {%- set names = [name] + mirror.renamed.get(name | lower, []) -%}
    {%- set until = [none] + (mirror.get('until') or {}).get(name | lower, [])
        + [none] * names | length -%}
    {%- set time = prefix ~ dbt_history._time_of_log(mirror) -%}
    {%- set cells = [] -%}
    {%- for one in names -%}
        {%- set stored = dbt_history._stored_name(one, own) -%}
        {%- set cell = prefix ~ dbt_history._quote(stored) -%}
        {%- set bounds = {'>=': until[loop.index], '<': until[loop.index0]}
            if one | lower in mirror.get('reused', []) else {} -%}
        {%- set terms = [] -%}
        {%- for sign, micros in bounds.items() if micros is not none -%}
            {%- do terms.append(time ~ ' ' ~ sign ~ ' timestamp_micros(' ~ micros ~ 'L)') -%}
        {%- endfor -%}
        {%- set cell = 'if(' ~ terms | join(' and ') ~ ', ' ~ cell ~ ', null)' if terms
            else cell -%}
        {%- do cells.append({'stored': stored | lower, 'sql': cell})
            if cell not in cells | map(attribute='sql') -%}
    {%- endfor -%}
    {%- do return(cells) -%}
{% endmacro %}


{# The column with the time of a change. #}
{% macro _time_of_log(log) %}
    {% set time = log.get('time')
        or ('_hist_time' if log.get('kind') == 'events' else 'mod_time') %}
    {% do return(dbt_history._quote(time)) %}
{% endmacro %}


{# The names that a log reserves for its own columns; see `_stored_name`. #}
{% macro _own_columns(log) %}
    {% do return(
        [] if log.get('kind') in ['events', 'changes']
            else ['deleted'] + ([log.id] if log.get('id') else [])
    ) %}
{% endmacro %}
