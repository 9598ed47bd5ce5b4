{#
    SQL: the value of a referencing column in a row of `numbered`, under its name at the time of the
    row.
#}
{% macro _reference_cell(capture, name, own_id) %}
    {%- set own = ['deleted', own_id] -%}
    {%- set names = capture.columns | map(attribute='name') | map('lower') | list -%}
    {%- set cases = [] -%}
    {%- for rename in capture.renames if rename.version <= (capture.head.version or 0) -%}
        {%- set old = dbt_history._captured_name(capture, name, rename.version - 1) -%}
        {%- if old | lower == rename.old | lower and old | lower in names -%}
            {%- do cases.insert(
                0,
                'when numbered.`__version` < ' ~ rename.version ~ 'L then numbered.'
                    ~ dbt_history._quote(dbt_history._stored_name(old, own)),
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set cell = 'numbered.'
        ~ dbt_history._quote(dbt_history._stored_name(
            dbt_history._captured_name(capture, name, capture.head.version), own,
        )) -%}
    {%- do return('case ' ~ cases | join(' ') ~ ' else ' ~ cell ~ ' end' if cases else cell) -%}
{% endmacro %}


{#
    The former names of each column, newest first, as the mirror's records store them: {'a_ref':
    ['a_id']}. A key column has one name in all rows.
#}
{% macro _former_names(capture) %}
    {% set former = dict(((capture.taken.about or {}).get('hx') or {}).get('renamed', {})) %}
    {% for rename in capture.renames | sort(attribute='version')
        if capture.watermark is not none and rename.version <= (capture.head.version or 0) %}
        {% do former.update({rename.new: [rename.old] + former.pop(rename.old, [])}) %}
    {% endfor %}
    {% for name in capture.key %}{% do former.pop(name, none) %}{% endfor %}
    {% do return(former) %}
{% endmacro %}


{#
    SQL: a column of the main table in its mirror or event table, under whichever of its names has a
    value in the row. `prefix` is a table alias with its dot, or ''.
#}
{% macro _renamed_cell(mirror, name, prefix='') %}
    {%- set own = dbt_history._own_columns(mirror) -%}
    {%- set cells = [prefix ~ dbt_history._quote(dbt_history._stored_name(name, own))] -%}
    {%- for old in mirror.renamed.get(name, []) -%}
        {%- set old = dbt_history._stored_name(old, own) -%}
        {%- do cells.append(prefix ~ dbt_history._quote(old)) if old | lower in mirror.names -%}
    {%- endfor -%}
    {%- do return('coalesce(' ~ cells | join(', ') ~ ')' if cells | length > 1 else cells[0]) -%}
{% endmacro %}


{# The names that a log reserves for its own columns; see `_stored_name`. #}
{% macro _own_columns(log) %}
    {% do return(
        [] if log.get('kind') == 'events' else ['deleted'] + ([log.id] if log.get('id') else [])
    ) %}
{% endmacro %}


{#
    The columns of a mirror: {'renamed', 'names' of its columns, 'id'}. A test with `where` gets a
    query instead of the table.
#}
{% macro _renames_of(mirror) %}
    {% set found = {'renamed': {}, 'names': [], 'id': none} %}
    {% set table = dbt_history._with_format(load_relation(mirror))
        if execute and mirror is not string else none %}
    {% if table is not none and not table.is_view %}
        {% set about = (dbt_history._commit_log(table, '').about or {}).get('hx') or {} %}
        {% do found.update({'id': about.get('id')}) %}
        {% if about.get('renamed') %}
            {% do found.update({
                'renamed': about.renamed,
                'names': dbt_history._table_columns(table) | map(
                    attribute='name'
                ) | map('lower') | list,
            }) %}
        {% endif %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
