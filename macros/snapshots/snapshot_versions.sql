{#
    A snapshot of any strategy as a version table of a convention: its columns for the period, and
    its flag for the current version, which dbt's own strategies cannot store.

        snapshot    [ a ---------)[ b --------)[ deleted ----)   half-open, NULL while current
        fivetran    [ a -------|  [ b --------|                  a ends one gap before b; a deletion
                                                                 ends b at the time of the deletion

    The rows that `hard_deletes: new_record` adds for deletions are left out. Key, column names and
    `dbt_valid_to_current` are those of the snapshot. Returns a sub-query for the FROM clause.
#}
{% macro snapshot_versions(relation, convention='fivetran') %}
    {%- if not execute -%} {%- do return(relation) -%} {%- endif -%}
    {%- set node = dbt_history._node_of_relation(relation) -%}
    {%- set convention = dbt_history.convention(convention) -%}
    {%- do dbt_history._check_snapshot_versions(node, convention, relation) -%}
    {%- set names = dbt_history._names_of_snapshot(node) -%}
    {%- set starts = dbt_history._quote(names.dbt_valid_from) -%}
    {%- set ends = dbt_history._quote(names.dbt_valid_to) -%}
    {%- set current = node.config.get('dbt_valid_to_current') -%}
    {%- set is_open = '(' ~ ends ~ ' is null'
        ~ (' or ' ~ ends ~ ' = ' ~ current if current else '') ~ ')' -%}
    {%- set key = node.config.unique_key -%}
    {%- set own = [starts, ends] -%}
    {%- for name in [names.dbt_scd_id, names.dbt_updated_at] -%}
        {%- do own.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- set has_deletions = node.config.get('hard_deletes') == 'new_record' -%}
    {%- set deleted = dbt_history._quote(names.dbt_is_deleted) -%}
    {%- do own.append(deleted) if has_deletions -%}
    {%- set sql -%}
(
    select
        * except ({{ own | join(', ') }}, `__follows`),
        {{ starts }} as {{ dbt_history._quote(convention.start) }},
        case
            when {{ is_open }} then {{ dbt_history._open_end(convention)
                if convention.open_end is not none else 'null' }}
            when `__follows` then {{ dbt_history._shift_by_gap(ends, convention) }}
            else {{ ends }}
        end as {{ dbt_history._quote(convention.end) }}
        {%- if convention.active %},
        {{ is_open }} as {{ dbt_history._quote(convention.active) }}
        {%- endif %}
    from (
        select
            *,
            lead({{ starts }}) over (
                partition by {{ key if key is string else key | join(', ') }}
                order by {{ starts }}
            ) <=> {{ ends }} as `__follows`
        from {{ relation }}
        {%- if has_deletions %}
        where not coalesce(cast({{ deleted }} as string) = 'True', false)
        {%- endif %}
    ) as versions
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{% macro _check_snapshot_versions(node, convention, relation) %}
    {% set problems = [] %}
    {% if node is none or node.resource_type != 'snapshot' %}
        {% do problems.append(relation ~ ' is no snapshot of the project') %}
    {% elif (node.config.get('meta') or {}).get('history') %}
        {% do problems.append(
            relation ~ ' has meta.history, so it stores the columns of a convention itself'
        ) %}
    {% endif %}
    {% if convention.type != 'timestamp' %}
        {% do problems.append('the convention counts ' ~ convention.type ~ ', a snapshot times') %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'snapshot_versions', 'this cannot be read as versions',
            got='\n    ' ~ problems | join('\n    '),
            expected='ref(<a snapshot of dbt\'s strategies>), and a convention of timestamps',
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
{% endmacro %}
