{#
    A column that was renamed (column mapping) while changes were still pending: each change has the
    name that was valid at its time.

        main b     update a_id = 5     rename a_id to a_ref     update a_ref = 6
        rows       a_id 5, a_ref NULL                           a_id NULL, a_ref 6

    A reference to column a_ref links both rows. A key column has its current name in all rows, so
    that they stay rows of one item; so have the columns by which a version table knows when a
    change was made, and whether it is a deletion (`fixed`). A RESTORE renames back what was renamed
    since the version that it restored:

        version    4      5              6 (last taken)    7              8
        main b     a_id   a_id to a_ref                    a_ref to r     restored to 4
        renames                                            a_ref to r     r to a_ref, a_ref to a_id

    Returns the renames among the changes that the model has not taken yet, newest first:
    {'version', 'old', 'new'}. Those of a RESTORE have one version: their order counts.
#}
{% macro _pending_renames(capture) %}
    {% set renames = [] %}
    {% set last = (capture.taken.watermark or {}).get('version') %}
    {% set is_same = last is not none
        and capture.taken.watermark.get('table_id') == capture.head.get('table_id') %}
    {% set entries = capture.entries or capture.head.get('entries', []) %}
    {% if is_same and entries and entries[-1].version > last + 1 %}
        {% set entries = dbt_history._entries_back_to(capture.relation, entries, last - 1) %}
        {% do capture.head.update({'entries': entries}) %}
    {% endif %}
    {% set pending = entries | selectattr('version', 'gt', last) | list if is_same else [] %}
    {% if 'RESTORE' in pending | map(attribute='operation') %}
        {% set pending = dbt_history._history_entries(capture.relation) %}
    {% endif %}
    {% for entry in pending | reverse %}
        {% if entry.operation == 'RENAME COLUMN' %}
            {% do renames.insert(0, {
                'version': entry.version,
                'old': dbt_history._top_name(entry.parameters.get('oldColumnPath')),
                'new': dbt_history._top_name(entry.parameters.get('newColumnPath')),
            }) %}
        {% elif entry.operation == 'RESTORE' and renames %}
            {% set restored = dbt_history._restored_version(entry) %}
            {% for rename in renames | list if rename.version > restored %}
                {% do renames.insert(0, {
                    'version': entry.version, 'old': rename.new, 'new': rename.old,
                }) %}
            {% endfor %}
        {% endif %}
    {% endfor %}
    {% do return(renames | selectattr('version', 'gt', last) | list if is_same else []) %}
{% endmacro %}


{# The name that a current column had in this version of the source. #}
{% macro _name_at(capture, name, version) %}
    {% set state = namespace(name=name) %}
    {% for rename in capture.renames
        if version is not none and rename.version > version
            and rename.new | lower == state.name | lower %}
        {% set state.name = rename.old %}
    {% endfor %}
    {% do return(state.name) %}
{% endmacro %}


{#
    The name that a column of the version last taken has in a later version; '' if another column
    has taken its name.
#}
{% macro _name_after(capture, name, version) %}
    {% set state = namespace(name=name) %}
    {% for rename in capture.renames | reverse if rename.version <= version %}
        {% set state.name = rename.new if rename.old | lower == state.name | lower
            else '' if rename.new | lower == state.name | lower else state.name %}
    {% endfor %}
    {% do return(state.name) %}
{% endmacro %}


{# The name that a current column has in captured rows of this version. #}
{% macro _captured_name(capture, name, version) %}
    {% set is_fixed = name | lower in capture.fixed | map('lower') %}
    {% do return(name if is_fixed else dbt_history._name_at(capture, name, version)) %}
{% endmacro %}


{#
    The columns of the source in this version, fixed columns under their current names; `source` is
    the name to read such a column by. Another column that had such a name then is left out.
#}
{% macro _with_fixed_names(capture, columns, version) %}
    {% set now = {} %}
    {% for name in capture.fixed %}
        {% do now.update({dbt_history._name_at(capture, name, version) | lower: name}) %}
    {% endfor %}
    {% set taken = now.values() | map('lower') | list %}
    {% set named = [] %}
    {% for column in columns %}
        {% set name = now.get(column.name | lower, column.name) %}
        {% if name | lower != column.name | lower %}
            {% do named.append(dict(column, name=name, source=column.name)) %}
        {% elif column.name | lower in now or column.name | lower not in taken %}
            {% do named.append(column) %}
        {% endif %}
    {% endfor %}
    {% do return(named) %}
{% endmacro %}


{#
    The current name of a column that a reference still names by its old name; none if the name is
    current.
#}
{% macro _renamed_to(capture, name) %}
    {% set state = namespace(now=name) %}
    {% if name | lower not in capture.head_columns | map(attribute='name') | map('lower') %}
        {% for rename in capture.renames | reverse if rename.old | lower == state.now | lower %}
            {% set state.now = rename.new %}
        {% endfor %}
        {% set is_known = dbt_history._name_at(
            capture, name, capture.head.version,
        ) | lower != name | lower %}
    {% endif %}
    {% do return(none if state.now == name or is_known else state.now) %}
{% endmacro %}


{#
    The columns that a part of the changes has under another name: {'name', 'former': [{'name',
    'where': SQL, the rows of the part}]}. The old rows of a difference are those of the model's
    table; the old ones of a comparison are those before the rename.

        main      v = 1     rename v to w    w = 2        at='w'
        rows      v 1       v 1, w 1         w 2
        w is      v         v        w       w
#}
{% macro _columns_under_former_names(capture) %}
    {% set parts, is_old = [], "`_change_type` in ('delete', 'update_preimage')" %}
    {% set diff, last = capture.diff, (capture.taken.watermark or {}).get('version') %}
    {% set pairs = [] if diff is none else [(diff.number, last, diff.version)] %}
    {% for part in capture.segments if part.is_compared %}
        {% do pairs.append((part.to, part['from'] - 1, part.to)) %}
    {% endfor %}
    {% for number, before, after in pairs %}
        {% set rows = '`_commit_version` = ' ~ number ~ ' and ' %}
        {% do parts.append((rows ~ is_old, before)) %}
        {% do parts.append((rows ~ 'not ' ~ is_old, after)) %}
    {% endfor %}
    {% for part in capture.segments if not part.is_compared %}
        {% do parts.append(
            ('`_commit_version` between ' ~ part['from'] ~ ' and ' ~ part.to, part.to)
        ) %}
    {% endfor %}
    {% set names = capture.columns | map(attribute='name') | map('lower') | list %}
    {% set found = [] %}
    {% for column in capture.head_columns if capture.renames %}
        {% set former = [] %}
        {% for rows, version in parts %}
            {% set name = dbt_history._captured_name(capture, column.name, version) %}
            {% do former.append({'name': name, 'where': rows})
                if name | lower != column.name | lower and name | lower in names %}
        {% endfor %}
        {% do found.append({'name': column.name, 'former': former}) if former %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
