{#
    The rows of a history mirror: one per change of `main`, with links to the history rows of other
    tables that were in force at that time.

        meta_network_hx       1 ------------- 4 ------------- 7    own ids, in the order of changes
        meta_station            a     b           c                changes of a station in it
        meta_network_hx_id      1     1           4                newest row at that time (<=)

    For a `history_append` model. Main tables and queries on them are unchanged.
#}
{% macro hx_rows(
    main, key=none, references=[], mod_user=none, method='auto', noop_updates='record',
    commit_delay=0
) %}
    {%- set key = dbt_history._key_of(main, key, 'hx_rows', or_own=true) -%}
    {%- if dbt_history._is_unit_test() -%}
        {%- do return('(select * from ' ~ main ~ ')') -%}
    {%- endif -%}
    {%- set log = dbt_history._log_of_own_table() -%}
    {%- set own_id = dbt_history._own_hx_id(log, main) -%}
    {%- set links = dbt_history._hx_links(references, own_id, this, key) -%}
    {%- set capture = dbt_history._plan_capture(
        main, key, method, 'hx_rows',
        layout={
            'order': own_id, 'time': 'mod_time', 'rows': '1 = 1', 'is_alive': 'not `deleted`',
            'reserved': ['deleted', own_id],
        },
        references=links, commit_delay=commit_delay, own_log=log,
    ) -%}
    {%- if capture.get('is_parsed_only') -%}
        {%- do return('(select * from ' ~ main ~ ')') -%}
    {%- endif -%}
    {%- set former = dbt_history._former_names(capture) -%}
    {%- do capture.update({
        'about': {
            'hx': dict(
                {'id': own_id, 'key': capture.key},
                **dict(
                    former, **({'links': links | map(attribute='name') | list} if links else {})
                ),
            )
        }
    }) -%}
    {%- do dbt_history._refuse_hx_columns(capture, own_id, links) -%}
    {%- do dbt_history._set_frames(capture, 'mod_time') -%}
    {%- set last = dbt_history._last_hx_id(capture, own_id) -%}
    {%- set sql = dbt_history._hx_sql(capture, own_id, last, links, mod_user, noop_updates) -%}
    {%- do return(
        dbt_history._note('ids', {'last': last, 'text': local_md5(sql | trim)}) ~ '\n' ~ sql
    ) -%}
{% endmacro %}
