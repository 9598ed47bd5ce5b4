{#
    Converts a history table to a table with one row per record and a delete flag, in one commit:
    the version with the greatest start, deleted = not active. All earlier versions and the
    tombstones of `late_events` are removed. With another `deleted_column` the table gets
    `_fivetran_deleted`, too, if it has none: false in every row, as the guide of the partner SDK
    adds it.

    A repeat of `merge_equal` or `track_columns` is no version: an empty row within another one.

        stored    [ a, 50 ---------------- open      the row that is kept
                         |                           repeat: a, 10, start 5, not active
#}
{% macro history_to_soft_delete(table, key, deleted_column='_fivetran_deleted', dry_run=false) %}
    {% set caller = 'history_to_soft_delete' %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set operation = {
        'operation': caller, 'key': dbt_history._key_columns(key),
        'deleted_column': deleted_column | lower,
    } %}
    {% if dbt_history._is_migrated(migrated.relation, operation, caller) %}
        {% do return(none) %}
    {% endif %}
    {% set problems = dbt_history._history_problems(migrated, key)
        + dbt_history._column_problems(migrated, deleted_column, key, 'boolean') %}
    {% do dbt_history._refuse_migration(problems, migrated, caller) %}
    {% set kept = [] %}
    {% for name in migrated.names.values()
        if name | lower not in [
            convention.start, convention.end, convention.active, deleted_column | lower,
        ] %}
        {% do kept.append(name) %}
    {% endfor %}
    {% set flag = '_fivetran_deleted' %}
    {% set is_added = flag not in [deleted_column | lower] + migrated.types.keys() | list %}
    {% set key_columns = dbt_history._key_columns(key) %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set end = dbt_history._quote(convention.end) %}
    {% set active = dbt_history._quote(convention.active) %}
    {% set is_empty = '(' ~ end ~ ' = ' ~ dbt_history._shift_by_gap(start, convention) ~ ')' %}
    {% set select_sql %}
        select
            {%- for name in kept %}
            {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }},
            {%- endfor %}
            not coalesce(flag, false) as {{ dbt_history._quote(deleted_column) }}
            {%- if is_added %},
            false as {{ dbt_history._quote(flag) }}
            {%- endif %}
        from (
            select
                *,
                row_number() over (
                    partition by {{ dbt_history._all_prefixed(key_columns) | join(', ') }}
                    order by starts desc, flag desc nulls last
                ) as place
            from (
                select
                    {%- for name in kept %}
                    {{ dbt_history._quote(name) }} as {{ dbt_history._prefixed(name) }},
                    {%- endfor %}
                    {{ start }} as starts,
                    {{ end }} as ends,
                    {{ active }} as flag,
                    coalesce(not {{ active }} and {{ is_empty }}, false) as is_empty,
                    max(
                        case
                            when {{ active }} then {{ dbt_history._open_end(convention) }}
                            when not {{ active }} and not {{ is_empty }} then {{ end }}
                        end
                    ) over (
                        partition by {{ dbt_history._quoted(key_columns) | join(', ') }}
                        order by {{ start }}
                        rows between unbounded preceding and 1 preceding
                    ) as earlier_end
                from {{ dbt_history._quoted_relation(migrated.relation) }} as stored
                where
                    not {{ dbt_history._is_tombstone_row(
                        migrated.columns, key_columns, convention,
                    ) }}
                    and {{ dbt_history._has_no_new_column(
                        'stored', migrated.names.values() | list, 'the migration',
                    ) | indent(20) }}
            ) as history
            where not (is_empty and coalesce(earlier_end > ends, false))
        ) as versions
        where place = 1
    {% endset %}
    {% if not dry_run %}
        {% set statement = dbt_history._replace_table_sql(
            migrated.relation, migrated.relation, select_sql,
            kept + [deleted_column] + ([flag] if is_added else []),
        ) %}
        {% do dbt_history._run_migration(migrated, statement, operation, caller) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, migrated.relation,
        ('would lose' if dry_run else 'has lost') ~ ' its history: one row per record, '
            ~ deleted_column ~ ' marks the deleted ones',
    ) %}
{% endmacro %}
