{#
    Converts the rows of a change feed to staged rows of a version table:

        select *
        from {{ dbt_history.batch_rows(
            dbt_history.changes(ref('customers'), 'id'), 'id', 'validity'
        ) }}

    Without `key` and `convention`, they are those of the model that contains the call.

        commit      1             2             4
        feed        insert a      update a -> b delete
        staged      upsert at 1   upsert at 2   delete at 4
        table       [ a ---------)[ b ---------)

    Where a convention has a gap, a deletion, like the start of a version, ends the record a gap
    before its point, so that `as_of` this point does not return it. Its start is the point, which
    deletes a version that starts there, too. The rows are late events for `history_batch`, unless
    the model sets `late_events: false`.

    `at` is the position of a change on the axis: `_commit_timestamp`, `_commit_version` on an axis
    of numbers, or an SQL expression. On an axis of days `_commit_timestamp` is its day in UTC; an
    expression is cast, so that a timestamp becomes its day in the session's time zone. The position
    of a commit (an expression with one of these two columns) never decreases for a record: a commit
    with an earlier clock time gets the time of the previous commit, and a source that was made
    again with a lower version is refused (`_earlier_numbers.sql`). An event's own time is used as
    it is, in any order. Of several changes of a record at one point the last one is kept, by
    `sequence` and then by commit, so where versions have their own numbers (`naksha`) the version
    number is the point. Without `at`, the first column of `sequence` is the position. Columns that
    these expressions and conditions name have their current names in all changes, also in those
    from before they were renamed. `delete_when` is a condition for changes that delete the record:

        happened, line     5, 1        5, 2        9, 1
        op                 I a         U b         D           delete_when="op = 'D'"
        staged             -           upsert at 5 delete at 9

    `merge_equal`, `track_columns`, `except`: which changes make a version (`_equal_versions.sql`).

    `ignore_null_updates`: NULL in a change means that the column keeps the value that the record
    has at its point. True, or the names of the columns. After a deletion there is no value to keep:

        at          3           5           7           9
        a, b        1, NULL     NULL, 2     delete      3, NULL
        staged      1, (kept)   1, 2        delete      3, NULL

    `truncate_when` is a condition for changes that end all records at their point: those that the
    model's table has open then or later, and those of the same run.

    No WITH: a MERGE would evaluate it more than once.
#}
{% macro batch_rows(
    changes, key=none, convention=none, at='_commit_timestamp', sequence=none, delete_when=none,
    merge_equal=false, track_columns=none, except=none, ignore_null_updates=false,
    truncate_when=none
) %}
    {%- set own = dbt_history._own_settings(key, convention, 'batch_rows') -%}
    {%- set key, convention = own.key, own.convention -%}
    {%- set is_numbered = dbt_history._identity_columns(convention) | length > 1 -%}
    {%- if convention.get('append_only') or (is_numbered and convention.type != 'bigint') -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'batch_rows', 'changes do not say all that this convention stores', got=convention.name,
            expected='a convention with an end, and with a version_id of its own only where'
                ~ ' versions are numbers',
        )) -%}
    {%- endif -%}
    {%- set keys = dbt_history._quoted(dbt_history._key_columns(key)) | join(', ') -%}
    {%- set sequence = dbt_history._quoted(dbt_history._key_columns(sequence)) -%}
    {%- set at = sequence[0] if sequence and at == '_commit_timestamp' else at -%}
    {%- set options = dbt_history._row_options(
        merge_equal, track_columns, except, ignore_null_updates, key, convention,
    ) -%}
    {%- set named = dbt_history._with_current_names(
        dbt_history._read_from(changes),
        dbt_history._names_in_expression(
            ([at, delete_when, truncate_when] + sequence) | select | join(' '),
        ),
    ) -%}
    {%- set source = named.sql -%}
    {%- do dbt_history._refuse_earlier_number(source, at, convention) -%}
    {%- do dbt_history._refuse_ignored_conditions(source, [delete_when, truncate_when]) -%}
    {%- set partly_said = {} if dbt_history._is_position_of_commit(at) or ignore_null_updates
        else dbt_history._partly_said(source, dbt_history._key_columns(key) + named.moved) -%}
    {%- set names = dbt_history._query_columns('select * from ' ~ source ~ ' as changes')
        | map(attribute='name') | list
        if execute and (ignore_null_updates or truncate_when or partly_said) else [] -%}
    {%- if names and truncate_when -%}
        {%- set source = dbt_history._with_truncations(
            source, names, key, convention, at, truncate_when,
        ) -%}
    {%- endif -%}
    {%- set partly_said = dict(partly_said.items() | selectattr(0, 'in', names)) -%}
    {%- if partly_said -%}
        {%- set source = dbt_history._with_cells_said_before(
            source, names, partly_said, dbt_history._key_columns(key), at, sequence,
        ) -%}
    {%- endif -%}
    {%- set kept = dbt_history._columns_that_keep(ignore_null_updates, names, key) -%}
    {%- set is_new = "`_change_type` in ('insert', 'update_postimage')" -%}
    {%- set begins = is_new
        ~ (' and not coalesce((' ~ delete_when ~ '), false)' if delete_when else '') -%}
    {# Within a commit, a new row follows the old one, and an event that deletes follows others. #}
    {%- set ties = [is_new, 'not `_begins`'] if delete_when else ['`_begins`'] -%}
    {%- set in_order = (['`_at`'] + sequence + ['`_commit_version`'] + ties) | join(', ') -%}
    {%- set sql -%}
( {{ dbt_history._plain_events_comment(options) }}
    select
        {%- if kept %}
        case
            when not `_begins` then 'delete'
            when `_life` = 0 and ({{ kept | join(' is null or ') }} is null) then 'update'
            else 'upsert'
        end as `_stage`,
        array_compact(array(
            {%- for column in kept %}
            if(
                `_life` = 0 and {{ column }} is null,
                {{ dbt_history._string_literal(column[1:-1] | replace('``', '`')) }},
                null
            ){{ ',' if not loop.last }}
            {%- endfor %}
        )) as `_unmodified`,
        {%- else %}
        if(`_begins`, 'upsert', 'delete') as `_stage`,
        {%- endif %}
        * except (
            `_change_type`, `_commit_version`, `_commit_timestamp`, `_begins`, `_at`, `_place`
            {{- ', `_life`, `_is_update`' if kept }}
        ),
        {{ '`_at`' if convention.gap else 'if(`_begins`, `_at`, null)' }}
            as {{ dbt_history._quote(convention.start) }},
        if(
            `_begins`,
            {{ dbt_history._open_end(convention) }},
            {{ dbt_history._shift_by_gap('`_at`', convention) }}
        ) as {{ dbt_history._quote(convention.end) }}
        {%- if is_numbered %},
        if(`_begins`, `_at`, null) as {{ dbt_history._quote(convention.version_id) }}
        {%- endif %}
        {%- if convention.active %},
        `_begins` as {{ dbt_history._quote(convention.active) }}
        {%- endif %}
    from (
        select
            *
            {%- if kept %} except ({{ kept | join(', ') }})
            {%- for column in kept %},
            last_value(if(`_begins`, {{ column }}, null), true) over (
                partition by {{ keys }}, `_life`
                order by {{ in_order }}
                rows between unbounded preceding and current row
            ) as {{ column }}
            {%- endfor %}
            {%- endif %},
            row_number() over (
                partition by {{ keys }}, `_at`
                order by
                    {%- for column in sequence %} {{ column }} desc,{% endfor %}
                    `_commit_version` desc, {{ ties | join(' desc, ') }} desc
            ) as `_place`
        from (
            {%- if kept %}
            select
                *,
                count_if(
                    not `_begins` and not (`_change_type` = 'update_preimage' and `_is_update`)
                ) over (
                    partition by {{ keys }}
                    order by {{ in_order }}
                    rows between unbounded preceding and current row
                ) as `_life`
            from (
            {%- endif %}
            select
                *,
                {{ begins }} as `_begins`,
                {%- if kept %}
                max(`_change_type` = 'update_postimage') over (
                    partition by {{ keys }}, `_commit_version`
                ) as `_is_update`,
                {%- endif %}
                {{ dbt_history._position_of_change(at, keys, convention) | indent(16) }} as `_at`
            from {{ source }} as `changes`
        ) as `points`
        {%- if kept %}) as `lives`{% endif %}
    ) as `last_changes`
    where `_place` = 1
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    `at` in the type of the axis. On an axis of days, the time of a commit is its day in UTC:

        UTC                    01-01 03:00    01-01 20:00
        session in Tokyo       01-01 12:00    01-02 05:00
        point                  01-01          01-01
#}
{% macro _point_of_change(at, convention) %}
    {%- set point = 'cast(' ~ at ~ ' as ' ~ convention.type ~ ')' -%}
    {%- if convention.type != 'date'
        or at | replace('`', '') | trim | lower != '_commit_timestamp' -%}
        {%- do return(point) -%}
    {%- endif -%}
    {%- do return(
        'if(typeof(' ~ at ~ ") = 'timestamp', "
            ~ dbt_history._utc_day('cast(' ~ at ~ ' as timestamp)') ~ ', ' ~ point ~ ')'
    ) -%}
{% endmacro %}


{#
    The position of a change. The old image of an update has that of the new one, so that it is no
    deletion.
#}
{% macro _position_of_change(at, keys, convention) %}
{%- set point = dbt_history._point_of_change(at, convention) -%}
{%- if dbt_history._is_position_of_commit(at) -%}
max({{ point }}) over (
    partition by {{ keys }}
    order by `_commit_version`
)
{%- else -%}
if(
    `_change_type` = 'update_preimage',
    coalesce(
        max(if(`_change_type` = 'update_postimage', {{ point }}, null)) over (
            partition by {{ keys }}, `_commit_version`
        ),
        {{ point }}
    ),
    {{ point }}
)
{%- endif -%}
{% endmacro %}


{#
    Whether an expression has a column of the feed's commits. Names and texts are compared as a
    whole: `last_commit_at` is a column of the event.
#}
{% macro _is_position_of_commit(at) %}
    {%- set names = dbt_history._names_in_expression(at) -%}
    {%- do return('_commit_timestamp' in names or '_commit_version' in names) -%}
{% endmacro %}


{# The names and texts in an SQL expression, in lower case. #}
{% macro _names_in_expression(expression) %}
    {%- set parts = modules.re.findall(
        '(?s)`(?:[^`]|``)*`|\'[^\']*\'|"[^"]*"|\\w+', expression,
    ) -%}
    {%- do return(parts | map('lower') | map('replace', '`', '') | list) -%}
{% endmacro %}


{#
    With `on_schema_change: ignore` a difference does not compare the columns that the table does
    not have (`_columns_not_kept`): of a record that only such a column marks as deleted, no change
    would be found.
#}
{% macro _refuse_ignored_conditions(source, conditions) %}
    {%- set names = [] -%}
    {%- for note in dbt_history._notes('capture', source)
        if dbt_history._on_schema_change(model) == 'ignore' -%}
        {%- for name in note.get('unstored', [])
            if name | lower in dbt_history._names_in_expression(
                conditions | select | join(' '),
            ) -%}
            {%- do names.append(name) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if names -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'batch_rows',
            'delete_when or truncate_when names a column that the table does not have, and that'
                ~ ' is not compared: deletions would be missed; nothing was written',
            got=names | unique | join(', ') ~ ', with on_schema_change: ignore',
            expected='columns of the table', node=model.unique_id,
            way_out='set on_schema_change to append_new_columns, so that the table gets them',
        )) -%}
    {%- endif -%}
{% endmacro %}


{# The quoted columns in which NULL keeps the value. #}
{% macro _columns_that_keep(ignore_null_updates, names, key) %}
    {%- set fixed = dbt_history._key_columns(key) + [
        '_change_type', '_commit_version', '_commit_timestamp', '_changed_by',
    ] -%}
    {%- set chosen = names if ignore_null_updates is boolean
        else dbt_history._key_columns(ignore_null_updates) -%}
    {%- set kept = [] -%}
    {%- for name in names
        if ignore_null_updates
            and name | lower in chosen | map('lower') | list
            and name | lower not in fixed | map('lower') | list -%}
        {%- do kept.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- do return(kept) -%}
{% endmacro %}


{#
    The changes with a deletion of every record at each truncation. The records are those of the
    other changes, and those of the model's table in force at the first truncation or later.
    A stored end is a gap before the end of the period:

        [ stored end ] gap      in force until here
                        ^ truncation
#}
{% macro _with_truncations(source, names, key, convention, at, truncate_when) %}
    {%- set keys = dbt_history._key_columns(key) -%}
    {%- set is_truncation = 'coalesce((' ~ truncate_when ~ '), false)' -%}
    {%- set table = load_relation(this) -%}
    {%- set first = '(select min(' ~ dbt_history._point_of_change(at, convention) ~ ') from '
        ~ source ~ ' as `changes` where ' ~ is_truncation ~ ')' -%}
    {%- set sql -%}
(
    select * from {{ source }} as `changes` where not {{ is_truncation }}
    union all
    select
        {%- for name in names %}
        {% if name | lower in keys | map('lower') | list -%}
        `records`.{{ dbt_history._quote(name) }}
        {%- elif name | lower == '_change_type' -%}
        'delete'
        {%- else -%}
        `truncations`.{{ dbt_history._quote(name) }}
        {%- endif %}{{ ',' if not loop.last }}
        {%- endfor %}
    from (select * from {{ source }} as `changes` where {{ is_truncation }}) as `truncations`
    cross join (
        select {{ dbt_history._quoted(keys) | join(', ') }}
        from {{ source }} as `changes`
        where not {{ is_truncation }}
        {%- if table %}
        union
        select {{ dbt_history._quoted(keys) | join(', ') }}
        from {{ dbt_history._quoted_relation(table) }} as `stored`
        where {{ dbt_history._is_open(convention) }}
            or {{ dbt_history._quote(convention.end) }} >
                {{ dbt_history._shift_by_gap(first, convention) }}
        {%- else %}
        group by {{ dbt_history._quoted(keys) | join(', ') }}
        {%- endif %}
    ) as `records`
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
