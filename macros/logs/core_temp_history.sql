{#
    The inbox of the coarse log: one row per transaction, table and kind of change (insert, update,
    delete), as the runs find them. `tables`: a list of {'main': ref or source, 'key': …, 'name':
    the table's name in the log}; without `key`, the key is what the table says. For a
    `history_append` model; runs only append to it.

        version   3        4     5          6        7         8
        feed      on       off   off        off      on        on
        log       update                             gap       update

    Where the changes of a table cannot be read one by one, a row with event `gap` marks it,
    followed by the difference between the two versions (3 and 7) as inserts, updates and deletes.
    The other tables are not affected.
#}
{% macro core_temp_history(tables, method='auto', noop_updates='record') %}
    {%- set parts, notes = [], [] -%}
    {%- for table in dbt_history._tables_named(tables) -%}
        {%- set table = {'main': table} if table is string or table.identifier is string
            else table -%}
        {%- set key = table.get('key') if table.main is string
            else dbt_history._key_of(table.main, table.get('key'), 'core_temp_history') -%}
        {%- set capture = dbt_history._plan_capture(
            table.main, key, method, 'core_temp_history', layout={'is_source': true},
        ) -%}
        {%- set name = dbt_history._string_literal(table.get('name') or table.main.identifier) -%}
        {%- if not capture.get('is_parsed_only') -%}
            {%- do parts.append(
                'select ' ~ dbt_history._transaction_id(capture)
                    ~ ' as trans_id, `_changed_by` as user, '
                ~ name ~ " as `table`, if(startswith(`_change_type`, 'update'), 'update', "
                ~ '`_change_type`) as event, `_commit_timestamp` as at from '
                    ~ dbt_history._changes_sql(capture, noop_updates, table.get('user'))
                    ~ ' as changes'
            ) -%}
        {%- endif -%}
        {%- if execute and capture.get('is_parsed_only') and not dbt_history._is_unit_test() -%}
            {%- do notes.append(dbt_history._note_of_missing(capture)) -%}
        {%- endif -%}
        {%- if capture.get('gap') -%}
            {%- set trans_id = dbt_history._string_literal(
                dbt_history._name_of_versions(capture) ~ capture.gap.version
            ) -%}
            {%- do parts.append(
                'select ' ~ trans_id ~ ' as trans_id, cast(null as string) as user, ' ~ name
                    ~ " as `table`, 'gap' as event, "
                ~ 'timestamp_micros(' ~ capture.gap.micros ~ 'L) as at'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not parts -%}
        {%- do parts.append(
            "select '' as trans_id, '' as user, '' as `table`, '' as event, timestamp'1970-01-01"
                ~ " 00:00:00 UTC' as at where 1 = 0"
        ) -%}
    {%- endif -%}
    {%- do return(
        '(\n    ' ~ notes | join
            ~ 'select trans_id, min(user) as user, `table`, event, min(at) as at\n    from (\n'
            ~ parts | join('\nunion all\n')
        ~ '\n    ) as found\n    group by trans_id, `table`, event\n)'
    ) -%}
{% endmacro %}
