{#
    A node's `meta.history` as a mapping; empty if it is missing or true. Text is the name of a
    convention. Any other type, and a misspelt `history` under `meta`, are refused.
#}
{% macro _history_meta(node, caller_name) %}
    {% set problem = dbt_history._meta_problem(node) %}
    {% if problem is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the metadata of the node is not valid', got=problem,
            expected='meta: {history: <convention>}, meta: {history: {<setting>: <value>}} or'
                ~ ' meta: {history: true}',
            node=node.unique_id,
        )) %}
    {% endif %}
    {% set said = dbt_history._node_meta(node).get('history') %}
    {% do return(
        {'convention': said} if said is string else dict(said) if said is mapping else {}
    ) %}
{% endmacro %}


{% macro _node_meta(node) %}
    {% do return((node.get('config') or {}).get('meta') or node.get('meta') or {}) %}
{% endmacro %}


{# What is wrong with `meta.history` itself, as text; none if it is valid. #}
{% macro _meta_problem(node) %}
    {% set meta = dbt_history._node_meta(node) %}
    {% for known in ['history', 'history_kind'] %}
        {% for name in meta
            if name is string and name not in ['history', 'history_kind']
                and dbt_history._edit_distance(name | lower, known) < 2 %}
            {% do return('meta has ' ~ name ~ ', did you mean ' ~ known ~ '?') %}
        {% endfor %}
    {% endfor %}
    {% set said = meta.get('history') %}
    {% if said is none or said is boolean or said is mapping or (said is string and said | trim) %}
        {% do return(none) %}
    {% endif %}
    {% do return('meta.history is ' ~ tojson(said)) %}
{% endmacro %}


{# The convention of these settings; `default` if they have none. #}
{% macro _node_convention(node, meta, default) %}
    {% set named = meta if dbt_history._names_convention(meta)
        else dict(meta, convention=default) %}
    {% do return(dbt_history.convention(dict(named, node=node.unique_id) if node else named)) %}
{% endmacro %}


{% macro _names_convention(meta) %}
    {% do return((meta.get('convention') or meta.get('start')) is not none) %}
{% endmacro %}


{#
    Key and convention of the model that is being run, where the arguments are missing. Before dbt
    runs, its settings may not be known yet.
#}
{% macro _own_settings(key, convention, caller_name) %}
    {% set key = dbt_history._key_columns(key)
        or dbt_history._key_columns((model.config or {}).get('unique_key')) %}
    {% set meta = dbt_history._history_meta(model, caller_name) if convention is none else {} %}
    {% set missing = (
        ([] if key else ['key'])
        + (['convention'] if convention is none and not dbt_history._names_convention(meta) else [])
    ) if execute else [] %}
    {% do dbt_history._refuse_unit_test(missing, caller_name) if missing %}
    {% if missing %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the model has no ' ~ missing | join(' and '),
            expected=missing | join(' and ') ~ ' as an argument, or unique_key and meta.history of'
                ~ ' the model that contains the call',
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
    {% do return({
        'key': key,
        'convention': dbt_history.convention(convention) if convention is not none
            else dbt_history._node_convention(model, meta, 'validity'),
    }) %}
{% endmacro %}


{# dbt compiles a unit test's model without its settings, and without the other models. #}
{% macro _refuse_unit_test(missing, caller_name) %}
    {% if execute and dbt_history._is_unit_test() %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, "dbt's unit tests do not show the settings of models",
            got='no ' ~ missing | join(' and no '),
            expected=missing | join(' and ') ~ ' as an argument of the call in the model',
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
{% endmacro %}


{# Reads and checks the settings of a history model. All problems are raised in one message. #}
{% macro _history_settings(node, caller_name) %}
    {% set meta = dbt_history._history_meta(node, caller_name) %}
    {% set is_history = node.config.get('materialized') == 'history' %}
    {% set known = [
        'convention', 'start', 'end', 'active', 'type', 'open_end', 'gap', 'version_id',
        'max_deleted_share', 'allow_full_refresh', 'continues', 'late_events',
    ] + (
        dbt_history._settings_of_history() if is_history
            else ['update_without_base', 'version_order', 'batches_per_commit', 'mod_user']
    ) %}
    {% set problems = dbt_history._unknown_settings(meta, known)
        + dbt_history._misplaced_settings(node, known)
        + dbt_history._shared_problems(node, meta) %}
    {% set key = dbt_history._columns_of_key(node.config.get('unique_key')) or [] %}
    {% set convention = dbt_history._node_convention(node, meta, 'validity') %}
    {% if not is_history and not dbt_history._names_convention(meta) %}
        {% do problems.append(
            'meta.history names no convention: fivetran, validity, naksha, dbt_snapshot, auto_cdc,'
                ~ ' or start and end columns'
        ) %}
    {% endif %}
    {% if not key and dbt_history._columns_of_key(node.config.get('unique_key')) is not none %}
        {% do problems.append(
            'unique_key is missing: name the columns that identify records, without the start'
                ~ ' column'
        ) %}
    {% endif %}
    {% for column in dbt_history._period_columns_in(key, convention) %}
        {% do problems.append(
            'unique_key names ' ~ column
                ~ ', a column of the period: it is the key of the record, not of the version'
        ) %}
    {% endfor %}

    {% set settings = {
        'key': key,
        'convention': convention,
        'update_without_base': meta.get('update_without_base'),
        'max_deleted_share': dbt_history._none_or(meta.get('max_deleted_share', 0.5)),
        'allow_full_refresh': meta.get('allow_full_refresh', false),
        'version_order': meta.get('version_order', 'any'),
        'batches_per_commit': dbt_history._none_or(meta.get('batches_per_commit')),
        'late_events': meta.get('late_events'),
        'continues': dbt_history._continued_models(meta, problems),
        'on_schema_change': dbt_history._on_schema_change(node),
    } %}
    {% do settings.update(
        dbt_history._select_settings(node, meta, key, convention, problems)
    ) if is_history %}
    {% if settings.update_without_base not in [none, 'skip', 'insert', 'fail'] %}
        {% do problems.append(
            'update_without_base is ' ~ settings.update_without_base ~ ': skip, insert or fail'
        ) %}
    {% endif %}
    {% if settings.version_order not in ['any', 'increasing'] %}
        {% do problems.append(
            'version_order is ' ~ settings.version_order ~ ': any, or increasing'
        ) %}
    {% endif %}
    {% set most = settings.batches_per_commit %}
    {% if most is not none and (most is not integer or most is boolean or most < 1) %}
        {% do problems.append(
            'batches_per_commit is ' ~ most ~ ': a number from 1, or none for all'
        ) %}
    {% endif %}
    {% set late = settings.late_events %}
    {% if late is not none and late is not boolean %}
        {% do problems.append('late_events is ' ~ tojson(late) ~ ': true or false') %}
    {% elif late and dbt_history._identity_columns(convention) | length > 1 %}
        {% do problems.append(
            'late_events needs one version per start, and versions have numbers of their own ('
                ~ convention.version_id ~ ')'
        ) %}
    {% endif %}
    {% set share = settings.max_deleted_share %}
    {% if share is not none
        and (share is not number or share is boolean or share < 0 or share > 1) %}
        {% do problems.append(
            'max_deleted_share is ' ~ share ~ ': a share between 0 and 1, or none for off'
        ) %}
    {% endif %}
    {% do dbt_history._refuse_settings(problems, node, caller_name) %}
    {% do return(settings) %}
{% endmacro %}


{% macro _settings_of_history() %}
    {% do return([
        'source', 'updated_at', 'deleted', 'merge_equal', 'track_columns', 'except',
        'snapshot_columns',
    ]) %}
{% endmacro %}


{#
    The settings that say how the SELECT of a `history` model is read: `source`, `updated_at`,
    `deleted`, and which changes make a version (see `batch_rows`). `updated_at` may be in the
    model's config, too, as for a snapshot.
#}
{% macro _select_settings(node, meta, key, convention, problems) %}
    {% set source = meta.get('source', 'state') %}
    {% set updated_at = meta.get('updated_at') or node.config.get('updated_at') %}
    {% set deleted = meta.get('deleted') %}
    {% if source not in ['state', 'changes'] %}
        {% do problems.append(
            'source is ' ~ tojson(source, source) ~ ': state (a missing record was deleted) or'
                ~ ' changes (a missing record is unchanged)'
        ) %}
    {% endif %}
    {% for name, column in {'updated_at': updated_at, 'deleted': deleted}.items()
        if column is not none %}
        {% if column is not string or not column | trim %}
            {% do problems.append(
                name ~ ' is ' ~ tojson(column, column) ~ ', which is not the name of a column'
            ) %}
        {% elif column | lower in key | map('lower') %}
            {% do problems.append(name ~ ' is ' ~ column ~ ', a column of unique_key') %}
        {% endif %}
    {% endfor %}
    {% if meta.get('updated_at') and node.config.get('updated_at') not in [none, updated_at] %}
        {% do problems.append(
            'updated_at is ' ~ updated_at ~ ' in meta.history and '
                ~ tojson(node.config.updated_at) ~ ' in the config: remove one of them'
        ) %}
    {% endif %}
    {% if deleted is not none and source != 'changes' %}
        {% do problems.append(
            'deleted is for source: changes. A state has no deleted records: filter them out in the'
                ~ ' SELECT'
        ) %}
    {% endif %}
    {% if convention.get('append_only') or dbt_history._identity_columns(convention) | length > 1 %}
        {% do problems.append(
            'convention ' ~ convention.name
                ~ ' cannot be used: it needs an end, and one version per start'
        ) %}
    {% elif convention.type == 'bigint' and (source != 'changes' or not updated_at) %}
        {% do problems.append(
            'a period of numbers (type: bigint) needs updated_at, and source: changes: the run has'
                ~ ' a time, but no number for a deletion'
        ) %}
    {% endif %}
    {% for name, setting in {
        'hard_deletes': 'source', 'invalidate_hard_deletes': 'source',
        'check_cols': 'track_columns', 'dbt_valid_to_current': 'open_end',
        'snapshot_meta_column_names': 'start, end and snapshot_columns',
    }.items() if node.config.get(name) is not none %}
        {% do problems.append(
            name ~ ' is a setting of snapshots: here it is ' ~ setting
                ~ ' of meta.history (docs/guides/adopt.md)'
        ) %}
    {% endfor %}
    {% set snapshot_columns = meta.get('snapshot_columns') or {} %}
    {% if snapshot_columns is not mapping
        or snapshot_columns.keys()
            | reject('in', ['dbt_scd_id', 'dbt_updated_at', 'dbt_is_deleted']) | list
        or snapshot_columns.values() | reject('string') | list %}
        {% do problems.append(
            'snapshot_columns is ' ~ tojson(snapshot_columns, snapshot_columns)
                ~ ': {dbt_scd_id: <name>, dbt_updated_at: <name>, dbt_is_deleted: <name>}'
        ) %}
    {% endif %}
    {% do return({
        'snapshot_columns': snapshot_columns if snapshot_columns is mapping else {},
        'source': source, 'updated_at': updated_at, 'deleted': deleted,
        'merge_equal': meta.get('merge_equal', false), 'track_columns': meta.get('track_columns'),
        'except': meta.get('except'),
    }) %}
{% endmacro %}


{% macro _unknown_settings(meta, known, of='') %}
    {% set problems = [] %}
    {% for name in meta if name not in known %}
        {% do problems.append(
            'meta.history has no setting ' ~ name ~ of ~ dbt_history._did_you_mean(name, known)
                ~ ' (known: ' ~ known | join(', ') ~ ')'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Settings in the node's `config` or directly under its `meta`, where nothing reads them. Under
    `meta` a project may keep notes of its own: only what cannot be one is a problem. Of `deleted`
    and `except` the columns of the SELECT decide (`_misplaced_columns`).
#}
{% macro _misplaced_settings(node, known) %}
    {% set problems = [] %}
    {% for name in ['history'] + known
        if name != 'updated_at' and node.config.get(name) is not none %}
        {% do problems.append(
            name ~ ' is in the config, where nothing reads it: write it under meta'
                ~ ('.history' if name != 'history')
        ) %}
    {% endfor %}
    {% set names = [
        'open_end', 'version_id', 'max_deleted_share', 'allow_full_refresh', 'late_events',
        'merge_equal', 'track_columns', 'snapshot_columns', 'update_without_base', 'version_order',
        'batches_per_commit', 'append_only',
    ] %}
    {% set values = {
        'convention': '^(fivetran|validity|naksha|dbt_snapshot|auto_cdc)$',
        'source': '^(state|changes)$', 'updated_at': '^[A-Za-z_]+$', 'mod_user': '^invocation$',
        'continues': '^model[.]',
    } %}
    {% for name, said in dbt_history._node_meta(node).items()
        if name in known and (
            name in names
            or (name in values and modules.re.match(
                values[name], (dbt_history._columns_of_key(said) or ['']) | first,
            ))
        ) %}
        {% do problems.append(
            name ~ ' is directly under meta, where nothing reads it: write meta.history.' ~ name
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{# Problems of `deleted` and `except` directly under `meta` that name columns of the SELECT. #}
{% macro _misplaced_columns(node, columns) %}
    {% set names = columns | map(attribute='name') | map('lower') | list %}
    {% set problems = [] %}
    {% for name in ['deleted', 'except'] %}
        {% set said = dbt_history._columns_of_key(dbt_history._node_meta(node).get(name)) or [] %}
        {% do problems.append(
            name ~ ' is directly under meta, where nothing reads it: write meta.history.' ~ name
        ) if said and not said | map('lower') | reject('in', names) | list %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Problems of the settings that version tables and logs share. Text is not accepted as a boolean,
    because 'false' would count as true.
#}
{% macro _shared_problems(node, meta) %}
    {% set problems = [] %}
    {% if meta.get('allow_full_refresh', false) is not boolean %}
        {% do problems.append(
            'allow_full_refresh is ' ~ tojson(meta.allow_full_refresh) ~ ': true or false'
        ) %}
    {% endif %}
    {% if dbt_history._columns_of_key(node.config.get('unique_key')) is none %}
        {% do problems.append(
            'unique_key is ' ~ tojson(node.config.get('unique_key'))
                ~ ': the name of a column, or a list of names'
        ) %}
    {% endif %}
    {% if meta.get('mod_user') not in [none, 'invocation'] %}
        {% do problems.append(
            'mod_user is ' ~ tojson(meta.mod_user) ~ ': invocation, for the user of the run where'
                ~ ' the commit names nobody; a column that has the name is an argument of changes,'
                ~ ' hx_rows and event_rows'
        ) %}
    {% endif %}
    {% if node.config.get('file_format') not in [none, 'delta', 'iceberg'] %}
        {% do problems.append(
            'file_format is ' ~ node.config.file_format ~ ': delta (the default) or iceberg'
        ) %}
    {% endif %}
    {% for name in ['pre-hook', 'post-hook'] %}
        {% do problems.append(
            name ~ ' has a hook outside the transaction, which would not run: Spark has no'
                ~ ' transaction, write it as a plain hook'
        ) if node.config.get(name) and node.config[name] | rejectattr('transaction') | list %}
    {% endfor %}
    {% do problems.extend(dbt_history._ignored_settings(node)) %}
    {% if (node.config.get('contract') or {}).get('enforced') %}
        {% do problems.append(
            'contract is enforced, but nothing checks the columns against it: set contract to'
                ~ ' {enforced: false} (on_schema_change: fail refuses new columns)'
        ) %}
    {% endif %}
    {% set said = dbt_history._on_schema_change(node) %}
    {% if said not in ['append_new_columns', 'fail', 'ignore'] %}
        {% do problems.append(
            'on_schema_change is ' ~ said
                ~ ': append_new_columns, fail or ignore (history never drops a column)'
        ) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{#
    Settings of dbt's incremental models, and in a batch or a log those of its snapshots, that
    nothing reads: each with what to write instead.
#}
{% macro _ignored_settings(node) %}
    {% set is_log = node.config.get('materialized') == 'history_append' %}
    {% set is_history = node.config.get('materialized') == 'history' %}
    {% set tracked = 'remove it, the rows of a log are never changed' if is_log
        else 'list the columns that make a version in track_columns of '
            ~ ('meta.history' if is_history else 'batch_rows') ~ ', or the others in except' %}
    {% set condition = 'filter the rows in the SELECT' if is_log
        else 'filter the rows in the SELECT; the merge finds those of the table by unique_key' %}
    {% set deletion = 'a deletion is a row of the log' if is_log
        else 'a deletion is a row of the batch, with _stage delete' %}
    {% set kinds = {'incremental models': {
        'merge_update_columns': tracked, 'merge_exclude_columns': tracked,
        'incremental_predicates': condition, 'predicates': condition,
    }} %}
    {% do kinds.update({'snapshots': {
        'check_cols': tracked, 'hard_deletes': deletion, 'invalidate_hard_deletes': deletion,
    }}) if not is_history %}
    {% set problems = [] %}
    {% for kind, instead in kinds.items() %}
        {% for name, way in instead.items() if node.config.get(name) is not none %}
            {% do problems.append(
                name ~ ' is a setting of ' ~ kind ~ ', which nothing reads here: ' ~ way
            ) %}
        {% endfor %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{% macro _refuse_settings(problems, node, caller_name) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'the settings of the model are not valid',
            got='\n    ' ~ problems | join('\n    '),
            node=node.unique_id,
            way_out={
                'history': 'docs/guides/history.md#settings lists them',
                'history_append': 'docs/flow/history_append.md#settings lists them',
            }.get(
                node.config.get('materialized'), 'docs/guides/batches.md#settings lists them',
            ),
        )) %}
    {% endif %}
{% endmacro %}


{# The previous unique ids of a renamed model, whose batches it continues. #}
{% macro _continued_models(meta, problems) %}
    {% set said = meta.get('continues') or [] %}
    {% set names = [said] if said is string else said %}
    {% if names is mapping or names is not iterable or names | reject('string') | list %}
        {% do problems.append(
            'continues is ' ~ said
                ~ ': the unique id of the model before it was renamed (model.<project>.<name>), or'
                ~ ' a list of them'
        ) %}
        {% do return([]) %}
    {% endif %}
    {% do return(names | list) %}
{% endmacro %}


{#
    dbt sets `ignore` where a model does not configure on_schema_change; the default of a history
    table is to append new columns.
#}
{% macro _on_schema_change(node) %}
    {% set said = dict(
        node.get('unrendered_config') or {}, **(node.get('config_call_dict') or {}),
    ) %}
    {% do return(
        node.config.get('on_schema_change') if 'on_schema_change' in said else 'append_new_columns'
    ) %}
{% endmacro %}
