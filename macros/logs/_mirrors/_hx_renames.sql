{#
    A column that was renamed (column mapping) while changes were still pending: each change has the
    name that was valid at its time.

        main b     update a_id = 5     rename a_id to a_ref     update a_ref = 6
        rows       a_id 5, a_ref NULL                           a_id NULL, a_ref 6

    A reference to column a_ref links both rows. Returns the renames among the changes that the
    mirror has not taken yet, newest first: {'version', 'old', 'new'}.
#}
{% macro _pending_renames(capture) %}
    {% set renames = [] %}
    {% set last = (capture.taken.watermark or {}).get('version') %}
    {% set is_same = last is not none
        and capture.taken.watermark.get('table_id') == capture.head.get('table_id') %}
    {% for entry in capture.entries or capture.head.get('entries', [])
        if is_same and entry.version > last and entry.operation == 'RENAME COLUMN' %}
        {% do renames.append({
            'version': entry.version,
            'old': dbt_history._top_name(entry.parameters.get('oldColumnPath')),
            'new': dbt_history._top_name(entry.parameters.get('newColumnPath')),
        }) %}
    {% endfor %}
    {% do return(renames) %}
{% endmacro %}


{# The log quotes a name that contains a dot. #}
{% macro _top_name(path) %}
    {% set path = path | string %}
    {% do return(path[1:-1].replace('``', '`') if path.startswith('`') else path) %}
{% endmacro %}


{# The name that a current column had in this version of the main table. #}
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
    The current name of a column that a reference still names by its old name; none if the name is
    current.
#}
{% macro _renamed_to(capture, name) %}
    {% set state = namespace(now=name) %}
    {% if name | lower not in capture.head_columns | map(attribute='name') | map('lower') %}
        {% for rename in capture.renames | sort(attribute='version')
            if rename.old | lower == state.now | lower %}
            {% set state.now = rename.new %}
        {% endfor %}
        {% set is_known = dbt_history._name_at(
            capture, name, capture.head.version,
        ) | lower != name | lower %}
    {% endif %}
    {% do return(none if state.now == name or is_known else state.now) %}
{% endmacro %}


{#
    SQL: the value of a referencing column in a row of `numbered`, under its name at the time of the
    row.
#}
{% macro _reference_cell(capture, name) %}
    {%- set names = capture.columns | map(attribute='name') | map('lower') | list -%}
    {%- set cases = [] -%}
    {%- for rename in capture.renames if rename.version <= (capture.head.version or 0) -%}
        {%- set old = dbt_history._name_at(capture, name, rename.version - 1) -%}
        {%- if old | lower == rename.old | lower and old | lower in names -%}
            {%- do cases.insert(
                0,
                'when numbered.`__version` < ' ~ rename.version ~ 'L then numbered.'
                    ~ dbt_history._quote(old),
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set cell = 'numbered.'
        ~ dbt_history._quote(dbt_history._name_at(capture, name, capture.head.version)) -%}
    {%- do return('case ' ~ cases | join(' ') ~ ' else ' ~ cell ~ ' end' if cases else cell) -%}
{% endmacro %}


{#
    The former names of each column, newest first, as the mirror's records store them: {'a_ref':
    ['a_id']}.
#}
{% macro _former_names(capture) %}
    {% set former = dict(((capture.taken.about or {}).get('hx') or {}).get('renamed', {})) %}
    {% for rename in capture.renames | sort(attribute='version')
        if capture.watermark is not none and rename.version <= (capture.head.version or 0) %}
        {% do former.update({rename.new: [rename.old] + former.pop(rename.old, [])}) %}
    {% endfor %}
    {% do return(former) %}
{% endmacro %}


{#
    SQL: a column of a mirror, under whichever of its names has a value in the row. `prefix` is a
    table alias with its dot, or ''.
#}
{% macro _renamed_cell(mirror, name, prefix='') %}
    {%- set cells = [prefix ~ dbt_history._quote(name)] -%}
    {%- for old in mirror.renamed.get(name, []) if old | lower in mirror.names -%}
        {%- do cells.append(prefix ~ dbt_history._quote(old)) -%}
    {%- endfor -%}
    {%- do return('coalesce(' ~ cells | join(', ') ~ ')' if cells | length > 1 else cells[0]) -%}
{% endmacro %}


{#
    The renamed columns of a mirror: {'renamed', 'names' of its columns}. A test with `where` gets a
    query instead of the table.
#}
{% macro _renames_of(mirror) %}
    {% set found = {'renamed': {}, 'names': []} %}
    {% set table = dbt_history._with_format(load_relation(mirror))
        if execute and mirror is not string else none %}
    {% if table is not none and not table.is_view %}
        {% set renamed = (
            (dbt_history._commit_log(table, '').about or {}).get('hx') or {}
        ).get('renamed', {}) %}
        {% if renamed %}
            {% do found.update({
                'renamed': renamed,
                'names': dbt_history._table_columns(table) | map(
                    attribute='name'
                ) | map('lower') | list,
            }) %}
        {% endif %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
