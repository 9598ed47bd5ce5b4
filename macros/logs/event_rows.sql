{#
    The rows of an event table: one per inserted or deleted row, two per updated row (before and
    after).

        main      insert      update            delete
        events    1 insert    3 update_from     2 delete
                              4 update_to

    Columns: the table's columns, then `_hist_trans_id`, `_hist_user`, `_hist_event` (letters I, D,
    F, T with codes='letters'), `_hist_time`. For a `history_append` model.
#}
{% macro event_rows(
    main, key=none, codes='integer', user=none, method='auto', noop_updates='record'
) %}
    {%- set key = dbt_history._key_of(main, key, 'event_rows', or_own=true) -%}
    {%- set values = dbt_history._event_codes(codes, 'event_rows') -%}
    {%- set layout = {
        'order': '_hist_time', 'time': '_hist_time',
        'rows': '`_hist_event` <> ' ~ values.update_preimage,
        'is_alive': '`_hist_event` <> ' ~ values.delete,
    } -%}
    {%- set capture = dbt_history._plan_capture(
        main, key, method, 'event_rows', layout=layout,
    ) -%}
    {%- if capture.get('is_parsed_only') -%}
        {%- do return('(select * from ' ~ main ~ ')') -%}
    {%- endif -%}
    {%- do dbt_history._refuse_event_columns(capture) -%}
    {#- In a table of several sources a name may belong to a column of each. -#}
    {%- set former = {} if capture.taken.other_sources else dbt_history._former_names(capture) -%}
    {%- do capture.update({
        'about': {
            'events': dict({'key': capture.key}, **former),
            'not_null': dbt_history._not_null_columns(capture),
        }
    }) -%}
    {%- do dbt_history._set_frames(capture, '_hist_time') -%}
    {%- set sql -%}
(
    select
        {%- for column in capture.columns %}
        {{ dbt_history._quote(column.name) }},
        {%- endfor %}
        {{ dbt_history._transaction_id(capture) }} as `_hist_trans_id`,
        `_changed_by` as `_hist_user`,
        case `_change_type`
            {%- for change, value in values.items() %}
            when {{ dbt_history._string_literal(change) }} then {{ value }}
            {%- endfor %}
        end as `_hist_event`,
        `_commit_timestamp` as `_hist_time`
    from {{ dbt_history._changes_sql(capture, noop_updates, user) | indent(4) }} as changes
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
