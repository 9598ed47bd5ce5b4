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

    `at` is the position of a commit on the axis: `_commit_timestamp`, `_commit_version` on an axis
    of numbers, or an SQL expression. It never decreases for a record: a commit with an earlier
    clock time gets the time of the previous commit. Of several changes of a record at one point the
    last one is kept, so where versions have their own numbers (`naksha`) the version number is the
    point. No WITH: a MERGE would evaluate it more than once.
#}
{% macro batch_rows(changes, key, convention, at='_commit_timestamp') %}
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
    {%- set sql -%}
(
    select
        if(`_begins`, 'upsert', 'delete') as `_stage`,
        * except (
            `_change_type`, `_commit_version`, `_commit_timestamp`, `_begins`, `_at`, `_place`
        ),
        if(`_begins`, `_at`, null) as {{ dbt_history._quote(convention.start) }},
        if(
            `_begins`, {{ dbt_history._open_end(convention) }}, `_at`
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
                order by `_commit_version` desc, `_begins` desc
            ) as `_place`
        from (
            select
                *,
                `_change_type` in ('insert', 'update_postimage') as `_begins`,
                max(cast({{ at }} as {{ convention.type }})) over (
                    partition by {{ keys }}
                    order by `_commit_version`
                ) as `_at`
            from {{ dbt_history._read_from(changes) }} as `changes`
        ) as `points`
    ) as `last_changes`
    where `_place` = 1
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
