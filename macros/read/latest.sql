{#
    The live items of an `_hx` table: for each item its newest row in (after, up_to], unless that
    row is a deletion.

        own id   1       2       3       4         up_to 3 --> row 3 of item a, nothing of b
                 a new   b new   a upd   b new     after 1, up_to 2 --> row 2 of b
                         b gone ...

    `by` is what the bounds refer to: 'hx_id' (the table's own ids), 'mod_time', or a column name.
    Within the bounds of a column, the newest row is the one with the greatest own id. `id` is the
    column of the own ids, if it is not named after the table. With a tag, 'tag:<name>', the bounds
    are times: from tag to tag is what changed between two bookmarks.
#}
{% macro latest(hx, key, up_to=none, after=none, by='hx_id', id=none) %}
    {%- set is_tagged = dbt_history._tag_of(up_to) is not none
        or dbt_history._tag_of(after) is not none -%}
    {%- set by = 'mod_time' if is_tagged else by -%}
    {%- set own_id = none if by == 'mod_time' and hx is string and not id
        else dbt_history._quote(dbt_history._hx_id(hx, id, 'latest')) -%}
    {%- set column = own_id if by == 'hx_id' else dbt_history._quote(by) -%}
    {%- set order = [column if by == 'mod_time' else none, own_id] | reject('none') | list -%}
    {%- set axis = {'type': 'timestamp' if by == 'mod_time' else 'bigint'} -%}
    {%- set reader = {'convention': axis, 'table': none if hx is string else hx} -%}
    {%- set filter = [] -%}
    {%- if up_to is not none -%}
        {%- do filter.append(column ~ ' <= ' ~ (
            dbt_history._point(up_to, reader, 'latest') if is_tagged
            else dbt_history._instant(up_to, axis, 'latest')
        )) -%}
    {%- endif -%}
    {%- if after is not none -%}
        {%- do filter.append(column ~ ' > ' ~ (
            dbt_history._point(after, reader, 'latest') if is_tagged
            else dbt_history._instant(after, axis, 'latest')
        )) -%}
    {%- endif -%}
    {%- do return(dbt_history._newest_rows(
        dbt_history._read_from(hx), dbt_history._key_columns(key), order,
        'not coalesce(`deleted`, false)', filter
    )) -%}
{% endmacro %}
