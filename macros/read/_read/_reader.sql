{#
    The input of a reader: {'from', 'convention', 'table'}. `from` goes into the FROM clause;
    `table` is the relation, whose tags and retention horizon apply; none if other text than
    schema.table was given. Logs are read as version tables:
    `{'convention': 'hx', 'key': ...}` and `{'convention': 'events', 'key': ...}`; without a
    convention or a key, what the log's commits record applies.
#}
{% macro _reader(relation, convention, caller_name) %}
    {% set from = dbt_history._read_from(relation) %}
    {% set table = dbt_history._table_of_text(relation) if relation is string else relation %}
    {% set is_assumed = not execute and convention is none and relation is not string %}
    {% set convention = dbt_history._convention_of_log(relation, convention) %}
    {% set convention = dbt_history._convention_of(relation, convention, caller_name) %}
    {% if not dbt_history._is_log(convention) %}
        {% do return({
            'from': from, 'table': table,
            'convention': dict(dbt_history.convention(convention), is_assumed=is_assumed),
        }) %}
    {% endif %}
    {% set log = dbt_history._log_settings(relation, convention, caller_name) %}
    {% set convention = dbt_history.convention({'start': '__valid_from', 'end': '__valid_to'}) %}
    {% do return({
        'from': dbt_history._log_versions(from, log), 'convention': convention, 'table': table,
        'log': log,
    }) %}
{% endmacro %}


{# The table that the text `schema.table` names; none for a sub-query, a CTE or a temporary view. #}
{% macro _table_of_text(text) %}
    {% set part = '(?:`[^`.]+`|[A-Za-z0-9_]+)' %}
    {% do return(
        dbt_history._named_relation(text, 'as_of')
            if modules.re.match('^' ~ part ~ '[.]' ~ part ~ '$', text) else none
    ) %}
{% endmacro %}


{# The relation as dbt renders it (for --empty and unit tests), quoted where its name needs it. #}
{% macro _read_from(relation) %}
    {%- set text = relation | string -%}
    {%- set is_odd = relation is not string
        and not modules.re.match('^[A-Za-z0-9_]*$', (relation.identifier or '') | string) -%}
    {%- do return(
        dbt_history._quoted_relation(relation) if is_odd and '`' not in text else text
    ) -%}
{% endmacro %}


{#
    How a log orders its rows, and which of them begin a version:

        time    order within a time        begins a version
        hx      mod_time, own id           a row that is no deletion
        events  _hist_time, transaction,   insert and update_to; delete and update_from end one,
                ends before begins         and come first
#}
{% macro _log_settings(relation, convention, caller_name) %}
    {% set key = dbt_history._key_columns(convention.get('key')) %}
    {# Before dbt runs, the key that the log's commits record is not known. #}
    {% if execute and not key %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'a log is read by the key of its items',
            got=convention,
            expected="{'convention': '" ~ convention.convention
                ~ "', 'key': <column, or list of columns>}",
        )) %}
    {% endif %}
    {% if convention.convention == 'hx' %}
        {% set own_id = dbt_history._hx_id(relation, convention.get('id'), caller_name) %}
        {% do return({
            'key': key, 'time': '`mod_time`', 'order': ['`mod_time`', dbt_history._quote(own_id)],
            'begins': 'not coalesce(`deleted`, false)',
        }) %}
    {% endif %}
    {% set begins = "cast(`_hist_event` as string) in ('1', '4', 'I', 'T')" %}
    {% do return({
        'key': key, 'time': '`_hist_time`', 'order': ['`_hist_time`', '`_hist_trans_id`', begins],
        'begins': begins,
    }) %}
{% endmacro %}


{#
    The own-id column of an `_hx` table: `<table>_id`, for example `customers_hx_id` of
    `customers_hx`.
#}
{% macro _hx_id(relation, said, caller_name) %}
    {% if said %}
        {% do return(said) %}
    {% elif relation is string or not relation.identifier %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'a sub-query has no name to derive the id column from',
            got=relation,
            expected='the name of the id column',
            way_out='name it: id',
        )) %}
    {% endif %}
    {% do return(
        (relation.identifier | string).replace('__dbt__cte__', '').replace('`', '') ~ '_id'
    ) %}
{% endmacro %}


{#
    A log as a version table: each row is in force until the next row of its item.

        log       insert --- update --- delete
        versions  [---------)[---------)
#}
{% macro _log_versions(from, log) %}
    {%- set sql -%}
(
    select * from (
        select
            *,
            {{ log.time }} as `__valid_from`,
            lead({{ log.time }}) over (
                partition by {{ dbt_history._quoted(log.key) | join(', ') }}
                order by {{ log.order | join(', ') }}
            ) as `__valid_to`
        from {{ from }} as log
    ) as versions
    where {{ log.begins }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# For each item, its newest row that satisfies `filter`, unless that row is a deletion. #}
{% macro _newest_rows(from, key, order, begins, filter) %}
    {%- set newest = [] -%}
    {%- for column in order -%}{%- do newest.append(column ~ ' desc') -%}{%- endfor -%}
    {%- set sql -%}
(
    select * except (`__place`) from (
        select
            *,
            row_number() over (
                partition by {{ dbt_history._quoted(key) | join(', ') }}
                order by {{ newest | join(', ') }}
            ) as `__place`
        from {{ from }} as log
        {%- if filter %}
        where {{ filter | join('\n            and ') }}
        {%- endif %}
    ) as newest
    where `__place` = 1 and {{ begins }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
