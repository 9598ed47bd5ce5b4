{#
    Every row that refers to an item of another table links to a history row of that item. A
    reference to an item that does not exist has no link; this test reports it. `erase_subject`
    keeps the links of the rows whose references it erases: in a mirror with an erasure, a row may
    have a link without a reference.
#}
{% test history_references_exist(model, references, id=none) %}
{%- set parts = [] -%}
{%- set table = dbt_history._tested_table(model) -%}
{%- set mirror = dbt_history._renames_of(table, 'history_references_exist') -%}
{%- set stored = dbt_history._with_format(load_relation(table))
    if execute and table is not none else none -%}
{%- set is_erased = stored is not none and not stored.is_view
    and dbt_history._may_be_erased(stored) -%}
{%- for link in dbt_history._hx_links(references, id or 'own_id', table or model) -%}
    {%- set named = [] -%}
    {%- set same = [] -%}
    {%- set left = [] -%}
    {%- set cells = [] -%}
    {%- for name in link.columns -%}
        {%- set cell = dbt_history._renamed_cell(mirror, name, 'log.') -%}
        {%- do cells.append(cell ~ ' as ' ~ dbt_history._quote(name)) -%}
        {%- do named.append(cell ~ ' is not null') -%}
        {%- do same.append(
            'referenced.' ~ dbt_history._quote(link.key[loop.index0]) ~ ' <=> ' ~ cell
        ) -%}
        {%- do left.append('(' ~ cell ~ ' is null or ' ~ same[-1] ~ ')') -%}
    {%- endfor -%}
    {%- set exists = 'referenced.' ~ dbt_history._quote(link.id) ~ ' is not null' -%}
    {%- do parts.append(
        'select ' ~ dbt_history._string_literal(link.name) ~ ' as link, log.'
            ~ dbt_history._quote(link.name) ~ ' as linked_id, to_json(struct('
        ~ cells | join(', ') ~ ')) as reference\nfrom (select * from ' ~ model
            ~ ') as log\nleft join ' ~ link.history ~ ' as referenced\n    on referenced.'
        ~ dbt_history._quote(link.id) ~ ' = log.' ~ dbt_history._quote(link.name)
            ~ '\nwhere not case\n    when '
        ~ named | join(' and ') ~ '\n    then case when ' ~ exists ~ ' then ' ~ same | join(' and ')
            ~ ' else false end\n    else log.' ~ dbt_history._quote(link.name) ~ ' is null'
        ~ (' or coalesce(' ~ left | join(' and ') ~ ' and ' ~ exists ~ ', false)' if is_erased
            else '')
        ~ '\nend'
    ) -%}
{%- endfor -%}
{{ parts | join('\n\nunion all\n\n') }}
{% endtest %}
