{#
    Replaces a table with the result of a SELECT in one commit, with the layout and the properties
    of `like`: the table itself, or the table that is copied. `select_columns`: the column names of
    the new table.
#}
{% macro _replace_table_sql(
    relation, like, select_sql, select_columns, is_new=false, location=none
) %}
    {%- set detail = run_query('describe detail ' ~ dbt_history._quoted_relation(like)).rows[0] -%}
    {%- set layout = dbt_history._as_list(detail['partitionColumns']) -%}
    {%- set partition_by = [] -%}
    {%- set others = [] -%}
    {%- set properties = dbt_history._kept_properties(like) -%}
    {%- if is_new -%}
        {#- `serve` has them in a table that was renamed or copied. -#}
        {%- for name in ['catalog_name', 'former_name', 'copied_from'] -%}
            {%- do properties.pop('dbt_history.' ~ name, none) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for name in layout if name | lower in select_columns | map('lower') | list -%}
        {%- do partition_by.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- for name in select_columns if name | lower not in layout | map('lower') | list -%}
        {%- do others.append(dbt_history._quote(name)) -%}
    {%- endfor -%}
    create {{ '' if is_new else 'or replace ' }}table {{ dbt_history._quoted_relation(relation) }}
    using delta
    {%- if partition_by %}
    partitioned by ({{ partition_by | join(', ') }})
    {%- endif %}
    {%- if location %}
    location {{ dbt_history._string_literal(location) }}
    {%- endif %}
    tblproperties (
        {%- for name, value in properties.items() %}
        {{ dbt_history._string_literal(name) }}
            = {{ dbt_history._string_literal(value) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    as
    -- Catalogs require partition columns last.
    select {{ (others + partition_by) | join(', ') }}
    from (
        {{ select_sql }}
    ) as replacing
{%- endmacro %}


{#
    Makes the copy of a table. A killed call may have left its folder: with a commit it is
    registered, and is the copy; files without a commit are not touched, and the copy gets another
    location.
#}
{% macro _make_copy(wanted, migrated, history, operation, caller_name) %}
    {% set relation = migrated.relation %}
    {% set failed = dbt_history._run_migration(
        migrated,
        dbt_history._replace_table_sql(
            wanted, relation, history.sql, history.columns, is_new=true,
        ),
        operation, caller_name, or_failed=true,
    ) %}
    {% if failed is none %}
        {% do return(none) %}
    {% endif %}
    {% set location = dbt_history._default_location(wanted) %}
    {% if dbt_history._register_existing_table(wanted, location) %}
        {% do dbt_history._refuse_migration(
            [] if dbt_history._is_migrated(wanted, operation, caller_name)
                else [wanted ~ ' exists already and is not a copy made by this migration'],
            migrated, caller_name,
        ) %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._run_migration(
        migrated,
        dbt_history._replace_table_sql(
            wanted, relation, history.sql, history.columns, is_new=true,
            location=location ~ '__' ~ invocation_id[:8],
        ),
        operation, caller_name,
    ) %}
{% endmacro %}


{# The properties that a user has set; those that Delta maintains are not copied. #}
{% macro _kept_properties(relation) %}
    {% set properties = {'delta.enableDeletionVectors': 'true'} %}
    {% set delta = '(min(Reader|Writer)Version|feature[.].*|columnMapping[.]maxColumnId'
        ~ '|rowTracking[.]materialized.*|inCommitTimestampEnablement.*)' %}
    {% set own = '^(delta[.]' ~ delta
        ~ '|type|owner|transient_lastddltime|spark[.]sql[.].*|option[.].*)$' %}
    {% for name, value in dbt_history._table_properties(relation).items()
        if not modules.re.match(own, name, modules.re.IGNORECASE) %}
        {% do properties.update({name: value}) %}
    {% endfor %}
    {% do return(properties) %}
{% endmacro %}


{# A list column as the connection returns it: JSON text through dbt, a list with some drivers. #}
{% macro _as_list(value) %}
    {% do return((fromjson(value) if value is string else value) or []) %}
{% endmacro %}


{#
    The rows of a table without history as versions: {'sql', 'columns'}. `deleted` is none for a
    table without soft deletes.
#}
{% macro _as_history(migrated, deleted, least) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set is_deleted = 'coalesce(items.' ~ dbt_history._quote(deleted) ~ ', false)' if deleted
        else 'false' %}
    {% set kept = [] %}
    {#- Without soft deletes a column of that name is data. #}
    {% for name in migrated.names.values()
        if not deleted or name | lower != '_fivetran_deleted' %}
        {% do kept.append(name) %}
    {% endfor %}
    {% set sql %}
        select
            {%- for name in kept %}
            items.{{ dbt_history._quote(name) }},
            {%- endfor %}
            if(
                {{ is_deleted }}, {{ least }}, newest.synced
            ) as {{ dbt_history._quote(convention.start) }},
            if(
                {{ is_deleted }}, {{ least }}, {{ dbt_history._open_end(convention) }}
            ) as {{ dbt_history._quote(convention.end) }},
            not {{ is_deleted }} as {{ dbt_history._quote(convention.active) }}
        from {{ dbt_history._quoted_relation(migrated.relation) }} as items
        cross join (
            select max(`_fivetran_synced`) as synced
            from {{ dbt_history._quoted_relation(migrated.relation) }}
        ) as newest
        where {{ dbt_history._has_no_new_column(
            'items', migrated.names.values() | list, 'the migration',
        ) | indent(8) }}
    {% endset %}
    {% do return({'sql': sql, 'columns': kept + dbt_history._period_columns(convention)}) %}
{% endmacro %}


{# Why a table cannot become a history table. #}
{% macro _soft_delete_problems(migrated, deleted) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set problems = [] %}
    {% for name in dbt_history._period_columns(convention) if name in migrated.types %}
        {% do problems.append(
            'the table has a column ' ~ name ~ ' already: it is in history mode'
        ) %}
    {% endfor %}
    {% if migrated.types.get('_fivetran_synced') != 'timestamp' %}
        {% do problems.append(
            'the table has no timestamp column _fivetran_synced: versions would have no start (a'
                ~ " model with materialized='history' keeps the history of any table)"
        ) %}
    {% endif %}
    {% if deleted and migrated.types.get(deleted | lower) != 'boolean' %}
        {% do problems.append(
            'the table has no boolean column ' ~ deleted ~ ': name the one that marks deleted rows'
                ~ ' in deleted_column, or set deleted_column: null if all rows are active'
        ) %}
    {% endif %}
    {% if not problems %}
        {% set open_rows = 'not coalesce(' ~ dbt_history._quote(deleted) ~ ', false)' if deleted
            else 'true' %}
        {% set synced = dbt_history._count_rows(
            migrated.relation, '`_fivetran_synced` is not null',
        ) %}
        {% if not synced and dbt_history._count_rows(migrated.relation, open_rows) %}
            {% do problems.append(
                '_fivetran_synced is NULL in all rows: versions would have no start'
            ) %}
        {% endif %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}
