{# The table of a log: its settings, its columns, what a change of the SELECT does to them. #}

{% macro _append_settings(node, caller_name) %}
    {% set meta = dbt_history._history_meta(node, caller_name) %}
    {% set known = [
        'allow_full_refresh', 'continues', 'mod_user', 'append_only', 'convention', 'start', 'type',
        'version_order',
    ] %}
    {% set problems = dbt_history._unknown_settings(meta, known, ' for a log')
        + dbt_history._misplaced_settings(node, known)
        + dbt_history._shared_problems(node, meta) %}
    {% set settings = {
        'key': dbt_history._columns_of_key(node.config.get('unique_key')) or [],
        'allow_full_refresh': meta.get('allow_full_refresh', false),
        'continues': dbt_history._continued_models(meta, problems),
        'on_schema_change': dbt_history._on_schema_change(node),
        'versions': dbt_history._append_only_convention(node, meta, problems),
        'version_order': meta.get('version_order', 'any'),
    } %}
    {% do dbt_history._refuse_settings(problems, node, caller_name) %}
    {% do return(settings) %}
{% endmacro %}


{# The convention of an append-only version table; none for any other log. #}
{% macro _append_only_convention(node, meta, problems) %}
    {% set is_versions = dbt_history._names_convention(meta) or meta.get('append_only') %}
    {% if is_versions and not (dbt_history._names_convention(meta) and meta.get('append_only')) %}
        {% do problems.append(
            'meta.history needs both a convention and append_only: true, because the versions of a'
                ~ ' log have a start and no end'
        ) %}
    {% elif not is_versions and (meta.get('type') or meta.get('version_order')) %}
        {% do problems.append(
            'type and version_order are for a log with a convention and append_only: true'
        ) %}
    {% endif %}
    {% if meta.get('version_order', 'any') not in ['any', 'increasing'] %}
        {% do problems.append(
            'version_order is ' ~ meta.version_order ~ ': any, or increasing'
        ) %}
    {% endif %}
    {% do return(
        dbt_history._node_convention(node, meta, none) if is_versions and not problems else none
    ) %}
{% endmacro %}


{# Problems of the SELECT's columns that do not depend on the table. #}
{% macro _check_log_columns(staged, settings, captured) %}
    {% set problems = [] %}
    {% set versions = settings.versions %}
    {% for column in staged.columns
        if versions and column.name | lower == versions.start | lower
            and not dbt_history._type_fits(column.type, versions.type) %}
        {% do problems.append(
            'column ' ~ column.name ~ ' is ' ~ column.type ~ ', not ' ~ versions.type
        ) %}
    {% endfor %}
    {% for name in settings.key if name | lower not in staged.names %}
        {% do problems.append('column ' ~ name ~ ' of unique_key is missing') %}
    {% endfor %}
    {% for column in staged.columns %}
        {% if column.name | lower in ['_metadata', '_tmp_metadata_row_index'] %}
            {% do problems.append(
                'column ' ~ column.name ~ ' has a name that Delta reserves'
            ) %}
        {% elif column.name | lower == '_batch'
            and not dbt_history._type_fits(column.type, 'bigint') %}
            {% do problems.append('column _batch is ' ~ column.type ~ ', not bigint') %}
        {% elif column.name | lower == '_batch' and captured is not none %}
            {% do problems.append('column _batch: the rows of changes have a number already') %}
        {% elif not dbt_history._is_comparable(column.type) and captured is none
            and '_batch' not in staged.names %}
            {% set kind = 'map' if 'map<' in column.type else 'variant' %}
            {% if column.name | lower in settings.key | map('lower') %}
                {% do problems.append(
                    'key column ' ~ column.name ~ ' is a ' ~ kind ~ ', which cannot be looked for'
                ) %}
            {% elif not settings.key %}
                {% do problems.append(
                    'column ' ~ column.name ~ ' is a ' ~ kind
                        ~ ', which cannot be looked for: name unique_key, or number the rows in'
                        ~ ' _batch'
                ) %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    The difference between the SELECT and the table's columns: {'names' to insert, 'added',
    'widened', 'extended' (a struct has more fields), 'wrong', 'removed' (lower-case names of the
    columns that the SELECT lacks)}.
#}
{% macro _log_change(staged, table_columns, is_iceberg) %}
    {% set change = {'names': [], 'added': [], 'widened': [], 'extended': [], 'wrong': []} %}
    {% set there = {} %}
    {% for column in table_columns %}
        {% do there.update({column.name | lower: column}) %}
    {% endfor %}
    {% set state = namespace(after=none) %}
    {% for column in staged.columns if column.name | lower != '_batch' %}
        {% set stored = there.get(column.name | lower) %}
        {% do change.names.append(stored.name if stored else column.name) %}
        {% if stored is none or not stored %}
            {% do change.added.append(dict(column, after=state.after)) %}
        {% elif not dbt_history._type_fits(column.type, stored.type) %}
            {% set fields = dbt_history._added_fields(
                stored.type, column.type, dbt_history._quote(stored.name),
            ) %}
            {% do change[
                'extended' if fields
                    else dbt_history._widening(stored.type, column.type, is_iceberg)
            ].append(dict(column, name=stored.name, stored=stored.type, fields=fields)) %}
        {% endif %}
        {% set state.after = stored.name if stored else column.name %}
    {% endfor %}
    {% do change.update({
        'removed': there.keys() | reject('in', staged.names) | list,
    }) %}
    {% do return(change) %}
{% endmacro %}


{#
    'widened' if the format can change the column to the new type without a rewrite and without
    loss, else 'wrong'. Delta does not widen an integer to a float; Iceberg widens an int to a
    bigint, a float to a double, and a decimal of the same scale.
#}
{% macro _widening(stored, type, is_iceberg) %}
    {% set stored, type = stored | replace(' ', ''), type | replace(' ', '') %}
    {% set scales = modules.re.findall('decimal[(][0-9]+,([0-9]+)[)]', stored ~ type) %}
    {% set is_widened = dbt_history._type_fits(stored, type) and (
        (stored, type) in [('int', 'bigint'), ('float', 'double')]
            or (scales | length == 2 and scales[0] == scales[1])
            if is_iceberg else
        stored.startswith('decimal') or (
            stored in ['tinyint', 'smallint', 'int', 'float'] and type != 'float'
        )
    ) %}
    {% do return('widened' if is_widened else 'wrong') %}
{% endmacro %}


{% macro _check_log_change(change, settings, is_new) %}
    {% set problems = [] %}
    {% for column in change.wrong %}
        {% do problems.append(
            'column ' ~ column.name ~ ' is ' ~ column.type ~ ', the table has ' ~ column.stored
        ) %}
    {% endfor %}
    {% set altered = change.widened + change.extended %}
    {% set stamped = [settings.versions.start | lower] if settings.versions else [] %}
    {% set differing = (change.added + altered) | map(attribute='name') | list
        + change.removed | reject('in', stamped) | list %}
    {% if not is_new and settings.on_schema_change == 'fail' and differing %}
        {% do problems.append(
            'the table differs in column ' ~ differing | join(', ') ~ ' (on_schema_change: fail)'
        ) %}
    {% endif %}
    {% if not is_new and settings.on_schema_change == 'ignore' %}
        {% for column in altered %}
            {% do problems.append(
                'column ' ~ column.name ~ ' is ' ~ column.type ~ ', the table has ' ~ column.stored
                    ~ ' (on_schema_change: ignore)'
            ) %}
        {% endfor %}
        {% set added = change.added | map(attribute='name') | list %}
        {% do change.update({'added': [], 'names': change.names | reject('in', added) | list}) %}
    {% endif %}
    {% do return(problems + dbt_history._check_void_columns(change.added)) %}
{% endmacro %}


{#
    Checks a table that this package did not write, before the first append: a row with a CHAR would
    be new in every run. An INSERT fills identity and generated columns by itself.
#}
{% macro _refuse_padded_log(relation, staged, caller_name) %}
    {% do dbt_history._refuse_existing(
        dbt_history._padded_columns(dbt_history._stored_fields(relation)),
        'a table without CHAR columns', staged, caller_name,
    ) %}
{% endmacro %}


{# Creates the table empty; a Delta log that is replaced has to be unlocked first. #}
{% macro _create_log(relation, columns, replace) %}
    {% set partition_by = config.get('partition_by') or [] %}
    {% set partition_by = [partition_by] if partition_by is string else partition_by %}
    {% set properties = dbt_history._properties_of_format(relation, columns, is_log=true) %}
    {% if replace and not relation.is_iceberg %}
        {% do dbt_history._open_log(dbt_history._quoted_relation(relation)) %}
    {% endif %}
    {% do dbt_history._create_table(relation, columns, partition_by, properties, replace) %}
{% endmacro %}


{# Adds NOT NULL to the columns that cannot be NULL in the source. #}
{% macro _with_not_null(columns, not_null) %}
    {% set marked = [] %}
    {% for column in columns %}
        {% do marked.append(dict(column, not_null=column.name in not_null)) %}
    {% endfor %}
    {% do return(marked) %}
{% endmacro %}


{#
    The columns that are NOT NULL in an event table and no longer in its source, or were dropped
    there. `log` does not know them before the first append, after a truncation, or if its entries
    have expired: then the table does.
#}
{% macro _nullable_now(relation, stored_columns, log, about) %}
    {% set known = (log.about or {}).get('not_null') %}
    {% if known is none and 'not_null' in about %}
        {% set known = dbt_history._not_null_in(
            dbt_history._quoted_relation(relation), stored_columns,
        ) %}
    {% endif %}
    {% do return(
        dbt_history._names_in_both(
            known or [], stored_columns | map(attribute='name') | list,
        ) | reject('in', about.get('not_null', [])) | list
    ) %}
{% endmacro %}


{#
    Adds columns at their position in the SELECT, fields at the end of their struct, and widens
    numeric types without a rewrite.
    Existing rows keep their values. `nullable`: see `_nullable_now`.
#}
{% macro _alter_log(relation, change, nullable, caller_name) %}
    {% do dbt_history._support_columns(relation, change.added, caller_name) %}
    {% set alter = 'alter table ' ~ dbt_history._quoted_relation(relation) %}
    {% for name in nullable %}
        {% do run_query(alter ~ ' alter column ' ~ dbt_history._quote(name) ~ ' drop not null') %}
    {% endfor %}
    {% for column in change.added %}
        {% set place = 'after ' ~ dbt_history._quote(column.after) if column.after else 'first' %}
        {% do run_query(
            alter ~ ' add columns (' ~ dbt_history._quote(column.name) ~ ' '
                ~ dbt_history._ddl_type(column.type) ~ ' ' ~ place ~ ')'
        ) %}
    {% endfor %}
    {% do dbt_history._extend_columns(relation, change.extended, caller_name) %}
    {% if change.widened and not relation.is_iceberg %}
        {% do run_query(alter ~ " set tblproperties ('delta.enableTypeWidening' = 'true')") %}
    {% endif %}
    {% for column in change.widened %}
        {% do run_query(
            alter ~ ' alter column ' ~ dbt_history._quote(column.name) ~ ' type ' ~ column.type
        ) %}
    {% endfor %}
{% endmacro %}
