{#
    Every row that refers to an item of another table links to a history row of that item. A
    reference to an item that does not exist has no link; this test reports it.
#}
{% test history_references_exist(model, references, id=none) %}
{%- set parts = [] -%}
{%- set mirror = dbt_history._renames_of(model) -%}
{%- for link in dbt_history._hx_links(references, id or 'own_id', model) -%}
    {%- set named = [] -%}
    {%- set same = [] -%}
    {%- set cells = [] -%}
    {%- for name in link.columns -%}
        {%- set cell = dbt_history._renamed_cell(mirror, name, 'log.') -%}
        {%- do cells.append(cell ~ ' as ' ~ dbt_history._quote(name)) -%}
        {%- do named.append(cell ~ ' is not null') -%}
        {%- do same.append(
            'referenced.' ~ dbt_history._quote(link.key[loop.index0]) ~ ' <=> ' ~ cell
        ) -%}
    {%- endfor -%}
    {%- do parts.append(
        'select ' ~ dbt_history._string_literal(link.name) ~ ' as link, log.'
            ~ dbt_history._quote(link.name) ~ ' as linked_id, to_json(struct('
        ~ cells | join(', ') ~ ')) as reference\nfrom ' ~ model ~ ' as log\nleft join '
            ~ link.history ~ ' as referenced\n    on referenced.'
        ~ dbt_history._quote(link.id) ~ ' = log.' ~ dbt_history._quote(link.name)
            ~ '\nwhere not case\n    when '
        ~ named | join(' and ') ~ '\n    then coalesce(' ~ same | join(' and ') ~ ' and referenced.'
            ~ dbt_history._quote(link.id)
        ~ ' is not null, false)\n    else log.' ~ dbt_history._quote(link.name) ~ ' is null\nend'
    ) -%}
{%- endfor -%}
{{ parts | join('\n\nunion all\n\n') }}
{% endtest %}
