{#
    Commits that rename columns, or drop one, or a field of a struct, that is there again later,
    change the records of the source, and the feed has no rows of it. For a version table they
    become parts of the feed that compare the table before with the table after them; a log knows
    the former names instead (`_former_names`).

        version    5         6                7         8         9         10
        source     update    rename v to w    update    drop x    update    add x
        parts      feed      5, 6 compared    feed      7, 8 compared: x is NULL; feed

    Renames that follow each other without other changes are one comparison. `last`: the version
    after which the feed is read; `diff_at`: that of a difference, or none. Returns the version of
    the difference, which includes a comparison that begins before it.
#}
{% macro _add_compared_parts(capture, last, diff_at) %}
    {% set marks = dbt_history._compared_versions(capture, last) %}
    {% if not marks %}
        {% do return(diff_at) %}
    {% endif %}
    {% set kept = dbt_history._operations_without_rows() + ['RENAME COLUMN', 'DROP COLUMNS'] %}
    {% set groups, state = [], namespace(is_open=false, diff_at=diff_at) %}
    {% for entry in capture.entries | sort(attribute='version')
        if entry.version > last and entry.version <= capture.head.version %}
        {% set state.is_open = state.is_open and entry.operation in kept %}
        {% if entry.version in marks and state.is_open %}
            {% do groups[-1].update({'to': entry.version}) %}
        {% elif entry.version in marks %}
            {% do groups.append({'from': entry.version, 'to': entry.version}) %}
            {% set state.is_open = entry.operation in kept %}
        {% endif %}
    {% endfor %}
    {% set parts = [] %}
    {% for group in groups %}
        {% if state.diff_at is none or group['from'] > state.diff_at %}
            {% do parts.append(dict(group, is_compared=true)) %}
        {% else %}
            {% set state.diff_at = [state.diff_at, group.to] | max %}
        {% endif %}
    {% endfor %}
    {% do capture.update({
        'segments': (dbt_history._parts_without(capture.segments, groups) + parts)
            | sort(attribute='from'),
    }) %}
    {% do return(state.diff_at) %}
{% endmacro %}


{#
    The versions of those commits, see `_add_compared_parts`. Not the rename of a column that has
    its current name in all rows (`fixed`).
#}
{% macro _compared_versions(capture, last) %}
    {% set found, fixed, dropped = [], [], [] %}
    {% for name in capture.fixed %}
        {% for rename in capture.renames
            if dbt_history._name_at(capture, name, rename.version) | lower == rename.new | lower
            and dbt_history._name_at(capture, name, rename.version - 1) | lower
                == rename.old | lower %}
            {% do fixed.append(rename) %}
        {% endfor %}
    {% endfor %}
    {% for rename in capture.renames if rename not in fixed %}
        {% do found.append(rename.version) %}
    {% endfor %}
    {% for entry in capture.entries
        if entry.operation == 'DROP COLUMNS' and entry.version > last
        and entry.version <= capture.head.version %}
        {% for path in fromjson(entry.parameters.get('columns') | string, []) %}
            {% do dropped.append({'path': path, 'version': entry.version}) %}
        {% endfor %}
    {% endfor %}
    {% set there = dbt_history._columns_at(capture, capture.head.version) if dropped else [] %}
    {% for column in dropped if dbt_history._has_field(there, column.path) %}
        {% do found.append(column.version) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    Whether these columns have a column or a field. Delta's log has a name quoted if it contains a
    dot:

        v      `a.b`      s.x: field x of struct s      l.element.x: of the structs in array l
#}
{% macro _has_field(columns, path) %}
    {% set state = namespace(fields=columns, is_there=false) %}
    {% for name in modules.re.findall('`(?:[^`]|``)*`|[^.]+', path) %}
        {% set name = dbt_history._top_name(name) | lower %}
        {% set found = [] %}
        {% for field in state.fields if field.name | lower == name %}
            {% do found.append(field.type) %}
        {% endfor %}
        {% set state.is_there = found | length > 0 %}
        {% set state.fields = dbt_history._fields_of(found | first | default('')) %}
    {% endfor %}
    {% do return(state.is_there) %}
{% endmacro %}


{# Parts of the feed without the versions of `groups`, which are in their order. #}
{% macro _parts_without(parts, groups) %}
    {% set pieces, state = [], namespace(first=0) %}
    {% for part in parts %}
        {% set state.first = part['from'] %}
        {% for group in groups if group.to >= part['from'] and group['from'] <= part.to %}
            {% do pieces.append({'from': state.first, 'to': group['from'] - 1})
                if group['from'] > state.first %}
            {% set state.first = group.to + 1 %}
        {% endfor %}
        {% do pieces.append({'from': state.first, 'to': part.to}) if state.first <= part.to %}
    {% endfor %}
    {% do return(pieces) %}
{% endmacro %}


{#
    Columns that were renamed in the version table, too: they have their current name in all rows,
    as a key that was renamed there has.

        source    city    renamed to town      table    city    renamed to town      town is fixed
        source    a, b    names swapped        table    a, b                         compared
#}
{% macro _renamed_in_both(capture) %}
    {% if not capture.renames or not capture.taken.has_rows
        or not dbt_history._is_of_versions(capture) %}
        {% do return([]) %}
    {% endif %}
    {% set last = capture.taken.watermark.version %}
    {% set stored = dbt_history._table_columns(this) | map(attribute='name') | map('lower')
        | list %}
    {% set names = [] %}
    {% for rename in capture.renames
        if rename.new | lower in stored
        and dbt_history._name_at(capture, rename.new, last) | lower not in stored %}
        {% do names.append(rename.new) %}
    {% endfor %}
    {% do return(names | unique | list) %}
{% endmacro %}
