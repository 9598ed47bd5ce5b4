{#
    The rows of a planned capture. Every source of rows is first converted to images, old and new,
    each with its version. The change of a key in a version follows from its images:

        old image   new image
        yes         no          delete
        no          yes         insert
        yes         yes         update; none if both are equal and no update wrote them (a rewrite)

    So an overwrite, a truncate, a replaced table and a difference (old: the known state; new: the
    table) give the same changes. No WITH: a MERGE would evaluate it more than once.
#}
{% macro _changes_sql(capture, noop_updates, changed_by=none, ignored=[]) %}
    {%- if dbt_history._is_unit_test() -%}
        {%- do return(dbt_history._changes_of_unit_test(capture.relation, changed_by)) -%}
    {%- elif capture.get('is_parsed_only') -%}
        {%- do return('(select * from ' ~ capture.relation ~ ')') -%}
    {%- endif -%}
    {%- set columns = capture.columns -%}
    {%- set ignored = ignored + dbt_history._columns_not_kept(capture) -%}
    {%- set compared = [] -%}
    {%- for column in columns if column.name | lower not in ignored | map('lower') | list -%}
        {%- do compared.append(column) -%}
    {%- endfor -%}
    {%- set sql -%}
(
    {{ dbt_history._capture_comment(capture) }}
    select
        {%- for column in columns %}
        {%- set name = dbt_history._prefixed(column.name) %}
        `change`.`row`.{{ name }} as {{ dbt_history._quote(column.name) }},
        {%- endfor %}
        `change`.`kind` as `_change_type`,
        `version` as `_commit_version`,
        {{ dbt_history._time_of_change(capture) }} as `_commit_timestamp`,
        `who` as `_changed_by`
    from (
        select
            `version`,
            `time`,
            {{ dbt_history._who(capture, changed_by) }} as `who`,
            explode(case
                when greatest(size(`olds`), size(`news`), `rows`) > 1
                    then raise_error({{ dbt_history._double_message(capture) }})
                when `old_row` is null and `new_row` is null then null
                when `old_row` is null then array(named_struct('kind', 'insert', 'row', `new_row`))
                when `new_row` is null then array(named_struct('kind', 'delete', 'row', `old_row`))
                when {{ '' if noop_updates == 'skip' else 'not `is_update` and ' }}
                    {{- dbt_history._rows_are_equal(compared, '`old_row`.', '`new_row`.') }}
                    then null
                else array(
                    named_struct('kind', 'update_preimage', 'row', `old_row`),
                    named_struct('kind', 'update_postimage', 'row', `new_row`)
                )
            end) as `change`
        from (
            select
                *,
                get(`olds`, 0) as `old_row`,
                get(`news`, 0) as `new_row`
            from ({{ dbt_history._images_of_keys(capture) | indent(12) }}) as `images_of_keys`
        ) as `keys`
    ) as `found`
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# The input of a unit test as in a first run: all rows are inserts, of a time that is known. #}
{% macro _changes_of_unit_test(relation, changed_by) %}
    {%- set who = dbt_history._quote(changed_by) if changed_by else 'null' -%}
    {%- do return(
        "(select *, 'insert' as `_change_type`, 0L as `_commit_version`,"
            ~ " timestamp'1970-01-01 00:00:00 UTC' as `_commit_timestamp`, cast(" ~ who
            ~ ' as string) as `_changed_by` from ' ~ relation ~ ')'
    ) -%}
{% endmacro %}


{#
    The images by key and version: `olds` and `news`, arrays of the images that the version removed
    and added, and `rows`, the number of rows that the key has after it, as far as the images show.
    A key may have had several rows for a while. From the version that added the second row to the
    one that left a single row, all changes count as one change at the last of these versions: a row
    that was both added and removed is neither old nor new.

        version    3       4          5           6           7
        feed       a -> b  c added    c -> d      b removed   d -> e
        rows       1       2          2           1           1
        change     a -> b  (                  b -> d       )  d -> e

    A difference has one version: a second row there is one that exists now.
#}
{% macro _images_of_keys(capture) %}
    {%- set keys = [] -%}
    {%- for name in capture.key -%}{%- do keys.append('`key_' ~ loop.index ~ '`') -%}{%- endfor -%}
    {%- set keys = keys | join(', ') -%}
    {%- set versions -%}
select
    {{ keys }},
    `version`,
    max(`time`) as `time`,
    bool_or(`is_update`) as `is_update`,
    {%- if capture.diff is not none %}
    max(`commit`) as `commit`,
    {%- endif %}
    collect_list(if(`is_new`, null, `image`)) as `olds`,
    collect_list(if(`is_new`, `image`, null)) as `news`,
    count_if(`is_new`) as `rows`
from (
    select
        *
        {%- for name in capture.key %},
        `image`.{{ dbt_history._prefixed(name) }} as `key_{{ loop.index }}`
        {%- endfor %}
    from (
        {{ dbt_history._images_sql(capture) | indent(8) }}
    ) as `images`
    {%- if capture.segments %}
    distribute by {{ keys }}
    {%- endif %}
) as `keyed`
group by {{ keys }}, `version`
    {%- endset -%}
    {%- do return(
        dbt_history._doubles_collapsed(capture, versions, keys) if capture.segments else versions
    ) -%}
{% endmacro %}


{#
    Collapses versions as drawn above. Before its first version a key has as many rows as that
    version removes. A version before which the key had at most one row begins another `place`.

        version    3       4          5           6           7           8          9
        feed       a -> b  c added    b removed   d added     c removed   d removed  e added
        rows       1       2          1           2           1           0          1
        change     a -> b  (  b -> c       )      (  c -> d        )      d removed  e added
        place      1       2          2           3           3           4          5
#}
{% macro _doubles_collapsed(capture, versions, keys) %}
    {%- set sql -%}
select
    * except (`olds`, `news`),
    if(
        `is_double`, slice({{ dbt_history._surplus(capture, '`olds`', '`news`') }}, 1, 1), `olds`
    ) as `olds`,
    if(`is_double`, {{ dbt_history._surplus(capture, '`news`', '`olds`') }}, `news`) as `news`
from (
    select
        max(`version`) as `version`,
        max_by(`time`, `version`) as `time`,
        bool_or(`is_update`) as `is_update`,
        {%- if capture.diff is not none %}
        max_by(`commit`, `version`) as `commit`,
        {%- endif %}
        flatten(collect_list(`olds`)) as `olds`,
        flatten(collect_list(`news`)) as `news`,
        max_by(`rows`, `version`) as `rows`,
        `is_double`
    from (
        select
            *,
            count_if(greatest(`rows` - size(`news`) + size(`olds`), size(`olds`)) <= 1) over (
                partition by {{ keys }} order by `version`
            ) as `place`
        from (
            select
                *,
                greatest(
                    `rows`, `rows` - size(`news`) + size(`olds`), size(`olds`), size(`news`)
                ) > 1 as `is_double`
            from (
                select
                    * except (`rows`),
                    first(size(`olds`)) over (partition by {{ keys }} order by `version`)
                    + sum(size(`news`) - size(`olds`)) over (
                        partition by {{ keys }} order by `version`
                    ) as `rows`
                from (
                    {{ versions | indent(20) }}
                ) as `versions`
            ) as `counted`
        ) as `marked`
    ) as `ranked`
    group by {{ keys }}, `is_double`, `place`
) as `collapsed`
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# The images of one side minus those of the other, counting duplicates. #}
{% macro _surplus(capture, side, other) %}
    {%- set is_same = 'another -> '
        ~ dbt_history._rows_are_equal(capture.columns, 'one.', 'another.') -%}
    {%- do return(
        'filter(' ~ side ~ ', (one, place) -> size(filter(slice(' ~ side ~ ', 1, place + 1), '
            ~ is_same ~ ')) > size(filter('
        ~ other ~ ', ' ~ is_same ~ ')))'
    ) -%}
{% endmacro %}


{# Old and new images: of the difference, of compared commits, then of each part of the feed. #}
{% macro _images_sql(capture) %}
    {%- set parts = [] -%}
    {%- set diff = capture.diff -%}
    {%- if diff is not none -%}
        {%- set time = 'timestamp_micros(' ~ diff.micros ~ 'L)' -%}
        {%- set table = diff.table or capture.table
            ~ (' version as of ' ~ diff.version if diff.version is not none else '') -%}
        {%- do parts.append(dbt_history._image_part(
            capture, table, diff.number ~ 'L', time, 'true', 'false', diff.columns,
            diff.get('commit') or 'cast(null as bigint)',
        )) -%}
        {%- if diff.state -%}
            {%- do parts.append(dbt_history._image_part(
                capture, '(' ~ dbt_history._known_state(capture) ~ ') as `state`',
                diff.number ~ 'L', time, 'false', 'false', diff.state_columns,
                diff.version ~ 'L' if diff.get('is_one_commit') else 'cast(null as bigint)',
            )) -%}
        {%- endif -%}
    {%- endif -%}
    {%- for part in capture.segments if part.is_compared -%}
        {%- do parts.extend(dbt_history._images_of_compared(capture, part)) -%}
    {%- endfor -%}
    {%- for part in capture.segments if not part.is_compared -%}
        {%- do parts.append(dbt_history._image_part(
            capture, dbt_history._table_changes(capture, part, not loop.first), '`_commit_version`',
            '`_commit_timestamp`',
            "`_change_type` in ('insert', 'update_postimage')",
            "`_change_type` in ('update_preimage', 'update_postimage')", part.columns,
            '`_commit_version`',
        )) -%}
    {%- endfor -%}
    {%- if not parts -%}
        {%- do parts.append(dbt_history._image_part(
            capture, capture.table ~ ' where 1 = 0', '0L', 'cast(null as timestamp)', 'true',
            'false', capture.columns
        )) -%}
    {%- endif -%}
    {%- do return(parts | join('\nunion all\n')) -%}
{% endmacro %}


{# The rows before commits that rename or drop columns, and those after them. #}
{% macro _images_of_compared(capture, part) %}
    {%- set time = 'timestamp_micros(' ~ dbt_history._version_micros(capture, part.to) ~ 'L)' -%}
    {%- set types, former = dbt_history._types_by_name(capture.columns), [] -%}
    {%- for column in part.former -%}
        {%- set type = types[column.name | lower] -%}
        {#- One that is there again with another type is NULL there. -#}
        {%- do former.append(column) if dbt_history._type_fits(column.type, type)
            or dbt_history._is_same_kind(column.type, type) -%}
    {%- endfor -%}
    {%- set found = [] -%}
    {%- for version, is_new, columns in [
        (part['from'] - 1, 'false', former), (part.to, 'true', part.columns),
    ] -%}
        {%- do found.append(dbt_history._image_part(
            capture, dbt_history._at_version(capture.relation, version), part.to ~ 'L', time,
            is_new, 'false', columns, part.to ~ 'L',
        )) -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}


{#
    The rows of one part as images; a column that the part lacks is NULL. `commit`: SQL, the commit
    that a row is attributed to.
#}
{% macro _image_part(
    capture, table, version, time, is_new, is_update, there, commit='cast(null as bigint)'
) %}
    {%- set own = {} -%}
    {%- for column in there -%}
        {%- do own.update({column.name | lower: column}) -%}
    {%- endfor -%}
    {%- set sql -%}
select
    {{ version }} as `version`,
    {{ time }} as `time`,
    {{ is_new }} as `is_new`,
    {{ is_update }} as `is_update`,
    {%- if capture.diff is not none %}
    {{ commit }} as `commit`,
    {%- endif %}
    named_struct(
        {%- for column in capture.columns %}
        {%- set found = own.get(column.name | lower) %}
        {%- set cell = dbt_history._quote(found.source or column.name)
            if found and found.type != 'void' else 'null' %}
        {%- set cell = dbt_history._converted(
            cell, found.type if found else 'void', column.type,
        ) %}
        {{ dbt_history._string_literal('c_' ~ column.name) }}, {{ cell }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) as `image`
from {{ table }}
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{% macro _double_message(capture) %}
    {%- set text = dbt_history._message(
        capture.caller_name, 'several rows of the source have the same key',
        expected='one row per key (' ~ capture.key | join(', ') ~ ') of ' ~ capture.relation,
        node=model.unique_id,
        way_out=capture.get('way_out')
            or 'remove the duplicates from the source, or name the columns that identify its rows',
    ) -%}
    {%- do return(
        'concat(' ~ dbt_history._string_literal(text ~ '\n  got: ')
            ~ ", coalesce(to_json(slice(concat(`news`, `olds`), 1, 5)), ''))"
    ) -%}
{% endmacro %}
