{#
    A snapshot strategy: `strategy: dbt_history.versions`. A record gets a new version when any
    checked column differs; NULLs are compared null-safe, maps by their entries. `check_cols`
    are the compared columns, each of them a column of the SELECT (default: all except the active
    column and the one in `updated_at`). With `updated_at` the new version starts at that time, and
    a row that is not newer than the stored version is ignored; without it, the version starts now.

    The key is one struct, so that a list of columns, unusual names and NULL in a key work.
#}
{% macro snapshot_versions_strategy(
    node, snapshotted_rel, current_rel, model_config, target_exists
) %}
    {% set keys = dbt_history._key_columns(config.get('unique_key')) %}
    {% set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() %}
    {% set updated_at = config.get('updated_at') %}
    {% set key = 'struct(' ~ dbt_history._quoted(keys) | join(', ') ~ ')' %}
    {% set starts_at = updated_at or snapshot_get_time() %}
    {% set checked = dbt_history._checked_columns(node, keys, updated_at) %}
    {% set changed = dbt_history._row_differs(node, snapshotted_rel, current_rel, checked)
        if target_exists else 'true' %}
    {% if updated_at %}
        {% set changed = '(' ~ changed ~ ') and ' ~ current_rel ~ '.' ~ updated_at ~ ' > '
            ~ snapshotted_rel ~ '.' ~ dbt_history._quote(names.dbt_valid_from) %}
    {% endif %}
    {% set hard_deletes = adapter.get_hard_deletes_behavior(config) %}
    {% do dbt_history._check_snapshot_dispatch(node, hard_deletes) %}
    {% do return({
        'unique_key': key,
        'updated_at': starts_at,
        'row_changed': '(' ~ changed ~ ')',
        'scd_id': dbt_history._id_of_version(keys, starts_at),
        'invalidate_hard_deletes': hard_deletes == 'invalidate',
        'hard_deletes': hard_deletes,
    }) %}
{% endmacro %}


{#
    The id of a version. The text of a time is that of a clock in the session's time zone, which two
    times have where the clocks are put back; their numbers differ.

        00:30 UTC    02:30 in Berlin
        01:30 UTC    02:30 in Berlin
#}
{% macro _id_of_version(keys, starts_at) %}
    {% do return(dbt_history.spark__snapshot_hash_arguments(
        dbt_history._quoted(keys)
            + [starts_at, 'unix_micros(try_cast(' ~ starts_at ~ ' as timestamp))']
    )) %}
{% endmacro %}


{# The compared columns: name to type. A name in `check_cols` that the SELECT lacks is refused. #}
{% macro _checked_columns(node, keys, updated_at) %}
    {% set history = dbt_history._history_meta(node, 'snapshot_versions_strategy') %}
    {% set convention = dbt_history.convention(history) if history else {} %}
    {# The SELECT may end with a comment. #}
    {% set columns = dbt_history._query_columns(
        'select * from (\n' ~ node['compiled_code'] ~ '\n)'
    ) %}
    {% set named = dbt_history._key_columns(config.get('check_cols') or 'all') %}
    {% set has_all = named | map('lower') | list == ['all'] %}
    {% set missing = [] if has_all else dbt_history._missing_columns(named, columns) %}
    {% if missing %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'snapshot_versions_strategy', 'the SELECT has no column that check_cols names',
            got=missing | join(', '),
            expected='all, or columns of the SELECT: '
                ~ columns | map(attribute='name') | join(', '),
            node=node.name,
        )) %}
    {% endif %}
    {% set checked = {} %}
    {% set left_out = keys + ([updated_at, convention.active] if has_all else []) %}
    {% for column in dbt_history._without(columns, left_out)
        if has_all or column.name | lower in named | map('lower') | list %}
        {% do checked.update({column.name: column.type}) %}
    {% endfor %}
    {% do return(checked) %}
{% endmacro %}


{# SQL that is true if a checked column differs, or does not exist yet. #}
{% macro _row_differs(node, snapshotted_rel, current_rel, checked) %}
    {% set relation = adapter.get_relation(
        database=none, schema=node.schema, identifier=node.alias,
    ) %}
    {% set stored = dbt_history._table_columns(relation) | map(
        attribute='name'
    ) | map('lower') | list %}
    {% set differences = [] %}
    {% for name, type in checked.items() %}
        {% if name | lower not in stored %}
            {% do return('true') %}
        {% endif %}
        {% set column = dbt_history._quote(name) %}
        {% do differences.append(
            'not (' ~ dbt_history._comparable(snapshotted_rel ~ '.' ~ column, type)
            ~ ' <=> ' ~ dbt_history._comparable(current_rel ~ '.' ~ column, type) ~ ')'
        ) %}
    {% endfor %}
    {% do return(differences | join(' or ') or 'false') %}
{% endmacro %}


{# Without the `dispatch` search order dbt-spark's own macros run and silently write wrong rows. #}
{% macro _check_snapshot_dispatch(node, hard_deletes) %}
    {% set merge = adapter.dispatch('snapshot_merge_sql', 'dbt') %}
    {% set columns = adapter.dispatch('get_columns_in_relation', 'dbt') %}
    {% set needed = (
        [merge] if dbt_history._history_meta(node, 'snapshot_versions_strategy') else []
    )
        + ([columns] if hard_deletes == 'new_record' else []) %}
    {% for found in needed if found.macro.package_name != 'dbt_history' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'snapshot_versions_strategy',
            'this snapshot needs the macro ' ~ found.macro.name ~ ' of dbt_history',
            got=found.macro.unique_id,
            expected='`meta.history` and `hard_deletes: new_record` only with the dispatch search'
                ~ ' order set',
            way_out="in dbt_project.yml: dispatch: [{macro_namespace: dbt, search_order: ["
                ~ project_name ~ ", dbt_history, dbt]}]",
            node=node.name,
        )) %}
    {% endfor %}
{% endmacro %}
