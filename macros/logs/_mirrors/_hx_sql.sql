{#
    The rows of a mirror. `__until` is the time up to which a row is linked to rows of referenced
    histories: its own time. Rows that existed before tracking began are linked to everything that
    exists, and a referenced row from before tracking counts as having always existed.
#}
{% macro _hx_sql(capture, own_id, last_id, links, mod_user, noop_updates) %}
    {%- set main = [] -%}
    {%- for column in capture.columns if column.name | lower not in ['mod_time', 'mod_user'] -%}
        {%- do main.append({
            'name': dbt_history._quote(column.name),
            'stored': dbt_history._quote(
                dbt_history._stored_name(column.name, ['deleted', own_id])
            ),
        }) -%}
    {%- endfor -%}
    {%- set changes = dbt_history._changes_sql(
        capture, noop_updates, mod_user, ignored=['mod_time', 'mod_user'],
    ) -%}
    {%- set sql -%}
(
    with changes as (
        select * from {{ changes | indent(8) }} as captured
        where `_change_type` <> 'update_preimage'
    ),

    numbered as (
        select
            {%- for column in main %}
            {{ column.name }}{{ ' as ' ~ column.stored if column.stored != column.name }},
            {%- endfor %}
            `_commit_timestamp` as `mod_time`,
            `_changed_by` as `mod_user`,
            `_change_type` = 'delete' as `deleted`,
            {{ last_id }}L + row_number() over (
                order by `_commit_version`, {{ dbt_history._quoted(capture.key) | join(', ') }}
            ) as {{ dbt_history._quote(own_id) }},
            {%- if capture.renames %}
            `_commit_version` as `__version`,
            {%- endif %}
            {{ dbt_history._seen_until(capture) }} as `__until`
        from changes
    )
    {%- for link in links %},

    link_{{ loop.index }} as (
        {{ dbt_history._link_sql(capture, own_id, link) | indent(8) }}
    )
    {%- endfor %}

    select
        {%- for column in main %}
        numbered.{{ column.stored }},
        {%- endfor %}
        numbered.`mod_time`,
        numbered.`mod_user`,
        numbered.`deleted`,
        numbered.{{ dbt_history._quote(own_id) }}
        {%- for link in links %},
        link_{{ loop.index }}.`__link` as {{ dbt_history._quote(link.name) }}
        {%- endfor %}
    from numbered
    {%- for link in links %}
    left join link_{{ loop.index }}
        on numbered.{{ dbt_history._quote(own_id) }} = link_{{ loop.index }}.`__row`
    {%- endfor %}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    For each row with a reference, the newest history row of the referenced item. The rows of the
    run are few: they are broadcast to the history, unless its commits have many.
#}
{% macro _link_sql(capture, own_id, link) %}
    {%- if capture.watermark is none -%}
        {#- Nothing is taken, perhaps because the history is not there yet. -#}
        {%- do return(
            'select ' ~ dbt_history._quote(own_id)
                ~ ' as `__row`, cast(null as bigint) as `__link` from numbered where 1 = 0'
        ) -%}
    {%- endif -%}
    {%- set is_population = capture.diff is not none and not capture.diff.state -%}
    {%- set is_bulk = is_population or dbt_history._rows_of_feed(capture) > 1000000 -%}
    select{{ '' if is_bulk else ' /*+ broadcast(numbered) */' }}
        numbered.{{ dbt_history._quote(own_id) }} as `__row`,
        max(referenced.`__id`) as `__link`
    from numbered
    inner join ({{ dbt_history._referenced_rows(capture, link) }}) as referenced
        on referenced.`__time` <= numbered.`__until`
        {%- for name in link.columns %}
        and {{ dbt_history._is_referenced(
            'referenced.`__key_' ~ loop.index ~ '`',
            dbt_history._reference_cell(capture, name, own_id),
            dbt_history._type_of_reference(capture, name),
            dbt_history._type_of_key(capture, link, name),
        ) }}
        {%- endfor %}
    group by numbered.{{ dbt_history._quote(own_id) }}
{%- endmacro %}


{#
    Whether a referenced key is that of a cell. Where one of the two is a text, it is read in the
    type of the other one, and a text that this type cannot hold is an unknown key: with ANSI mode a
    bare comparison would raise an error, and the mirror would never go on.

        key       bigint    1         string    1, x      bigint    1
        cell      string    1, n/a    bigint    1         bigint    1
        links     1                   1                   1

    `key_type` is known only where the cell is a text; else Spark, which knows it, removes the
    branch that does not apply, before it plans the join.
#}
{% macro _is_referenced(key, cell, type, key_type) %}
    {%- if not dbt_history._is_text(type) -%}
        {%- do return(
            'case when typeof(' ~ key ~ ") = 'string' then try_cast(" ~ key ~ ' as ' ~ type ~ ') = '
                ~ cell ~ ' else ' ~ key ~ ' = ' ~ cell ~ ' end'
                if '<' not in type and type != 'void' else key ~ ' = ' ~ cell
        ) -%}
    {%- endif -%}
    {%- do return(
        key ~ ' = ' ~ (
            cell if dbt_history._is_text(key_type) or '<' in key_type
                else 'try_cast(' ~ cell ~ ' as ' ~ key_type ~ ')'
        )
    ) -%}
{% endmacro %}


{# Whether values of a type are text, which another type may not be able to hold. #}
{% macro _is_text(type) %}
    {%- do return((type | lower).split('(')[0] in ['string', 'varchar', 'char']) -%}
{% endmacro %}


{# The type of a referencing column; of one that is not found, as of a text. #}
{% macro _type_of_reference(capture, name) %}
    {%- set now = dbt_history._captured_name(capture, name, capture.head.version) -%}
    {%- do return(dbt_history._types_by_name(capture.columns).get(now | lower, 'string')) -%}
{% endmacro %}


{# The type of the key that a text references; the columns of its history are asked only then. #}
{% macro _type_of_key(capture, link, name) %}
    {%- if not dbt_history._is_text(dbt_history._type_of_reference(capture, name)) -%}
        {%- do return(none) -%}
    {%- endif -%}
    {%- if 'types' not in link -%}
        {%- do link.update({'types': dbt_history._types_by_name(
            capture.columns if link.is_own else dbt_history._table_columns(link.history)
        )}) -%}
    {%- endif -%}
    {%- set key = link.key[link.columns.index(name)] -%}
    {%- do return(link.types.get(key | lower, 'string')) -%}
{% endmacro %}


{# How many rows the commits of the feed say that they have changed; not all commits say it. #}
{% macro _rows_of_feed(capture) %}
    {%- set state = namespace(rows=0) -%}
    {%- set first = capture.segments[0]['from'] if capture.segments else none -%}
    {%- for entry in capture.entries
        if first is not none and first <= entry.version <= capture.head.version -%}
        {%- for name in [
            'numTargetRowsInserted', 'numTargetRowsUpdated', 'numTargetRowsDeleted',
            'numUpdatedRows', 'numDeletedRows',
        ] + (['numOutputRows'] if entry.operation != 'MERGE' else []) -%}
            {%- set state.rows = state.rows + entry.metrics.get(name, 0) | int -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do return(state.rows) -%}
{% endmacro %}


{#
    The rows of a history that a reference needs; for a reference to the mirror itself, also the
    rows of this run.
#}
{% macro _referenced_rows(capture, link) %}
    {%- set keys = [] -%}
    {%- for name in link.key -%}
        {%- do keys.append(dbt_history._quote(name) ~ ' as `__key_' ~ loop.index ~ '`') -%}
    {%- endfor -%}
    {%- set select = 'select ' ~ keys | join(', ') ~ ', ' ~ dbt_history._quote(link.id)
        ~ ' as `__id`, ' -%}
    {%- set parts = [] -%}
    {%- if not link.is_own or capture.taken.has_rows -%}
        {%- do parts.append(
            select ~ dbt_history._seen_from(link) ~ ' as `__time` from '
                ~ dbt_history._quoted_relation(link.history)
        ) -%}
    {%- endif -%}
    {%- if link.is_own -%}
        {%- do parts.append(select ~ '`mod_time` as `__time` from numbered') -%}
    {%- endif -%}
    {%- do return(parts | join(' union all ')) -%}
{% endmacro %}


{% macro _seen_until(capture) %}
    {%- if capture.diff is not none and not capture.diff.state -%}
        {%- do return(
            'if(`_commit_version` = ' ~ capture.diff.number
                ~ "L, timestamp'9999-12-31 00:00:00 UTC', `_commit_timestamp`)"
        ) -%}
    {%- endif -%}
    {%- do return('`_commit_timestamp`') -%}
{% endmacro %}


{#
    The highest id assigned so far. It is a constant: of two runs that read the same log only one
    commits its number. The newest commit says it, if the model appended all rows of `hx_rows` with
    it (`_noted_last_id`): to read it from the table, Delta reads the state of the table.
#}
{% macro _last_hx_id(capture, own_id) %}
    {%- if capture.watermark is none or not capture.taken.has_rows -%}
        {%- do return(0) -%}
    {%- endif -%}
    {%- set appended = capture.taken.get('appended') -%}
    {%- if appended and appended.record.get('last_id') is not none -%}
        {%- do return((appended.record.last_id | int) + appended.rows) -%}
    {%- endif -%}
    {%- set last = run_query(
        'select max(' ~ dbt_history._quote(own_id) ~ ') from ' ~ dbt_history._quoted_relation(this)
    ).rows[0][0] -%}
    {%- do return(last | int if last is not none else 0) -%}
{% endmacro %}
