{#
    Converts the rows of a change feed to staged rows of a version table:

        select *
        from {{ dbt_history.batch_rows(
            dbt_history.changes(ref('customers'), 'id'), 'id', 'validity'
        ) }}

        commit      1             2             4
        feed        insert a      update a -> b delete
        staged      upsert at 1   upsert at 2   delete at 4
        table       [ a ---------)[ b ---------)

    Where a convention has a gap, a deletion, like the start of a version, ends the record a gap
    before its point, so that `as_of` this point does not return it. Its start is the point, which
    deletes a version that starts there, too. The rows are late events for `history_batch`, unless
    the model sets `late_events: false`.

    `at` is the position of a change on the axis: `_commit_timestamp`, `_commit_version` on an axis
    of numbers, or an SQL expression. The position of a commit (an expression with `_commit_`) never
    decreases for a record: a commit with an earlier clock time gets the time of the previous
    commit. An event's own time is used as it is, in any order. Of several changes of a record at
    one point the last one is kept, by `sequence` and then by commit, so where versions have their
    own numbers (`naksha`) the version number is the point. Without `at`, the first column of
    `sequence` is the position. `delete_when` is a condition for changes that delete the record:

        happened, line     5, 1        5, 2        9, 1
        op                 I a         U b         D           delete_when="op = 'D'"
        staged             -           upsert at 5 delete at 9

    No WITH: a MERGE would evaluate it more than once.
#}
{% macro batch_rows(
    changes, key, convention, at='_commit_timestamp', sequence=none, delete_when=none
) %}
    {%- set convention = dbt_history.convention(convention) -%}
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
    {%- set begins = "`_change_type` in ('insert', 'update_postimage')"
        ~ (' and not coalesce((' ~ delete_when ~ '), false)' if delete_when else '') -%}
    {%- set sql -%}
( {{ dbt_history._plain_events_comment() }}
    select
        if(`_begins`, 'upsert', 'delete') as `_stage`,
        * except (
            `_change_type`, `_commit_version`, `_commit_timestamp`, `_begins`, `_at`, `_place`
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
            *,
            row_number() over (
                partition by {{ keys }}, `_at`
                order by
                    {%- for column in sequence %} {{ column }} desc,{% endfor %}
                    `_commit_version` desc, `_begins` desc
            ) as `_place`
        from (
            select
                *,
                {{ begins }} as `_begins`,
                {{ dbt_history._position_of_change(at, keys, convention) | indent(16) }} as `_at`
            from {{ dbt_history._read_from(changes) }} as `changes`
        ) as `points`
    ) as `last_changes`
    where `_place` = 1
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The position of a change. The old image of an update has that of the new one, so that it is no
    deletion.
#}
{% macro _position_of_change(at, keys, convention) %}
{%- set point = 'cast(' ~ at ~ ' as ' ~ convention.type ~ ')' -%}
{%- if '_commit_' in at -%}
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
