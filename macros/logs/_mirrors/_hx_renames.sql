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
    The columns of a mirror: {'renamed', 'until', 'reused', 'names' of its columns, 'id'}; of none,
    and of a table that is not there, nothing is known.
#}
{% macro _renames_of(mirror, caller_name) %}
    {% set found = {'renamed': {}, 'names': [], 'id': none} %}
    {% set table = dbt_history._with_format(dbt_history._loaded(mirror, caller_name))
        if execute and mirror is not none else none %}
    {% if table is not none and not table.is_view %}
        {% set about = (dbt_history._commit_log(table, '').about or {}).get('hx') or {} %}
        {% do found.update({'id': about.get('id')}) %}
        {% if about.get('renamed') %}
            {% do found.update({
                'renamed': about.renamed, 'until': about.get('until'),
                'reused': about.get('reused', []),
                'names': dbt_history._table_columns(table) | map(
                    attribute='name'
                ) | map('lower') | list,
            }) %}
        {% endif %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
