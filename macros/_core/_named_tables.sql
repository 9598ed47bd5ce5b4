{#
    The tables of a run-operation, as a list of {'name', 'relation', 'key', 'convention', 'node'}.
    `table` is the name of a model, snapshot or seed of the project, a list of names, `all` for
    every version table of the project that has been built, or 'schema.table' for a table outside
    the project. `convention` and `key` apply where the node's settings have none. `or_none`: an
    empty result is no error. `keeps_rows`: the operation changes no row, so that logs can be used,
    too, and a key is not needed.
#}
{% macro _maintained(table, convention, key, caller_name, or_none=false, keeps_rows=false) %}
    {% set tables = [] %}
    {% set problems = [] %}
    {% for name in dbt_history._named_tables(table, keeps_rows) %}
        {% set node = dbt_history._node_named(name, caller_name) %}
        {% set is_log = (node.config if node else {}).get('materialized') == 'history_append' %}
        {% set parts = (name | string).split('.') %}
        {% if node is none and parts | length != 2 %}
            {% do problems.append(
                name ~ ': no model, snapshot or seed has this name (a table of another project:'
                    ~ ' schema.table)'
            ) %}
        {% elif is_log and not keeps_rows %}
            {% do problems.append(
                name ~ ': a log (history_append) is append-only; the operation needs versions that'
                    ~ ' have an end'
            ) %}
        {% else %}
            {% set found = {'key': [], 'convention': none} if is_log
                else dbt_history._table_settings(node, convention, key, caller_name) %}
            {% set relation = load_relation(api.Relation.create(
                database=node.database if node else none, schema=node.schema if node else parts[0],
                identifier=node.alias if node else parts[1],
            )) %}
            {% set is_missing = relation is none or relation.is_view %}
            {% set of_period = [] if keeps_rows
                else dbt_history._period_columns_in(found.key, found.convention) %}
            {% if is_missing and table == 'all' %}
                {% do log(
                    'dbt_history: ' ~ name ~ ' is left out: the table does not exist yet',
                    info=true,
                ) %}
            {% elif is_missing %}
                {% do problems.append(name ~ ': there is no such table yet') %}
            {% elif not keeps_rows and found.convention.get('append_only') %}
                {% do problems.append(
                    name ~ ': it is append-only; the operation needs versions that have an end'
                ) %}
            {% elif not keeps_rows and not found.key %}
                {% do problems.append(name ~ ': name the key columns (key)') %}
            {% elif of_period %}
                {% do problems.append(
                    name ~ ': the key names ' ~ of_period | join(', ')
                        ~ ', a column of the period: it is the key of the record, not of the'
                        ~ ' version'
                ) %}
            {% endif %}
            {% do none if is_missing
                else tables.append({
                    'name': name, 'relation': relation, 'key': found.key,
                    'convention': found.convention, 'node': node,
                }) %}
        {% endif %}
    {% endfor %}
    {% if problems or not (tables or or_none) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'not every table can be used; nothing was done',
            got='\n    ' ~ (problems or ['no table']) | join('\n    '),
            expected='version tables, by the name of the node or as schema.table with convention'
                ~ ' and key',
        )) %}
    {% endif %}
    {% do return(tables) %}
{% endmacro %}


{# The names of a call; `all` has the logs only if they are asked for. #}
{% macro _named_tables(table, with_logs=false) %}
    {% if table is not string or table != 'all' %}
        {% do return([table] if table is string else (table or []) | list) %}
    {% endif %}
    {% set nodes = [] %}
    {% for node in graph.nodes.values() if node.resource_type == 'model' %}
        {% if dbt_history._makes_versions(node)
            or (with_logs and node.config.get('materialized') == 'history_append') %}
            {% do nodes.append(node) %}
        {% endif %}
    {% endfor %}
    {% do return(dbt_history._unmistakable_names(nodes) | sort) %}
{% endmacro %}


{# Whether a model makes a version table, by its materialization or as an incremental strategy. #}
{% macro _makes_versions(node) %}
    {% do return(
        node.config.get('materialized') in ['history', 'history_batch']
        or node.config.get('incremental_strategy') == 'history_batch'
    ) %}
{% endmacro %}


{#
    Key and convention: the operation's arguments, else the node's settings. `default`: the
    convention of a table that is neither a snapshot nor a `history` model, and names none.
#}
{% macro _table_settings(node, convention, key, caller_name, default='fivetran') %}
    {% set meta = dbt_history._history_meta(node, caller_name) if node else {} %}
    {% set default = 'validity' if node and (node.config or {}).get('materialized') == 'history'
        else default %}
    {% set is_snapshot = node and node.resource_type == 'snapshot' %}
    {% if is_snapshot and convention is none and not dbt_history._names_convention(meta) %}
        {% set meta = dict(
            dbt_history._convention_of_snapshot(node, meta.get('type')), **meta
        ) %}
    {% endif %}
    {% do return({
        'key': dbt_history._key_columns(key) or (
            dbt_history._key_of_node(node, has_versions=true) if node else []
        ),
        'convention': dbt_history.convention(convention) if convention
            else dbt_history._node_convention(node, meta, default),
    }) %}
{% endmacro %}


{#
    The convention of a relation: the argument, else that of the history model or snapshot behind
    it, else `default`. A `ref` of a model is found by its name; dbt knows the models when it runs.
#}
{% macro _convention_of(relation, convention, caller_name, default='fivetran') %}
    {% if convention is not none %}{% do return(convention) %}{% endif %}
    {% set node = dbt_history._node_of_relation(relation) %}
    {% do return(
        dbt_history._table_settings(node, none, none, caller_name, default).convention
            if node is not none else default
    ) %}
{% endmacro %}


{#
    The key of a relation's records, as a list: the argument, else what the model, source, snapshot
    or seed behind it says, else, with `or_own`, what the model that is being run says; there a
    missing key is the caller's problem. dbt knows all of them when it runs; before that the key may
    be empty. `convention`: that of a table of versions.
#}
{% macro _key_of(relation, key, caller_name, or_own=false, convention=none) %}
    {% set said = dbt_history._key_columns(key) %}
    {% if not execute or (said and convention is none) %}{% do return(said) %}{% endif %}
    {% set node = none if said else dbt_history._node_of_relation(relation) %}
    {% set found = said if node is none
        else dbt_history._key_of_node(node, has_versions=convention is not none) %}
    {% set own = dbt_history._node_of_context() if or_own else none %}
    {% if not found and own is not none %}
        {% set found = dbt_history._key_columns((model.config or {}).get('unique_key')) %}
    {% endif %}
    {% do dbt_history._refuse_unit_test(['key'], caller_name)
        if not found and dbt_history._node_of_context() is not none %}
    {% if not found and not or_own %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'no key is known', got=relation,
            expected='a key: as an argument, or said of the table by unique_key, meta.history.key,'
                ~ ' a primary key constraint, or the tests unique and not_null of one column'
                if convention is none
                else 'the key of the records: as an argument, or said of the table by unique_key or'
                    ~ ' meta.history.key (a column that is unique identifies a version)',
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
    {% set of_period = dbt_history._period_columns_in(found, convention) if convention else [] %}
    {% if of_period %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the key contains a column of the period: ' ~ of_period | join(', '),
            got=found | join(', '), expected='the key of the record, not of the version',
            node=dbt_history._node_of_context(),
            way_out='name the key of the record as the argument key',
        )) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{#
    The model, snapshot, seed or source behind a relation; none for other tables and for text,
    except for the filtered table of a generic test. A source that is the table of a model counts as
    the model. With --defer, a relation may be the table of a node in another environment.
#}
{% macro _node_of_relation(relation) %}
    {% if not execute or graph is not defined %}
        {% do return(none) %}
    {% elif relation is string %}
        {% do return((dbt_history._filtered_table(relation) or {}).get('node')) %}
    {% elif not relation.identifier %}
        {% do return(none) %}
    {% endif %}
    {# A project may have thousands of nodes: no macro is called for each. #}
    {% set identifier = relation.identifier | string | lower %}
    {% set schema = relation.schema | string | lower %}
    {% set deferred = [] %}
    {% for node in (graph.get('nodes') or {}).values() | list
            + (graph.get('sources') or {}).values() | list
        if node.resource_type in ['model', 'snapshot', 'seed', 'source'] %}
        {% set other = node.get('defer_relation') or {} %}
        {% if (node.get('alias') or node.get('identifier') or '') | lower == identifier
            and (node.get('schema') or '') | lower == schema %}
            {% do return(node) %}
        {% elif other and (other.get('alias') or other.get('identifier') or '') | lower
            == identifier and (other.get('schema') or '') | lower == schema %}
            {% do deferred.append(node) %}
        {% endif %}
    {% endfor %}
    {% do return(deferred[0] if deferred else none) %}
{% endmacro %}


{#
    Whether a node depends on a table, itself or through ephemeral models. With --defer a node has
    two places; one that has also that of the table `besides` does not count.
#}
{% macro _depends_on_table(node, relation, besides=none) %}
    {% set ids = node.depends_on.get('nodes', []) | list %}
    {% for id in ids %}
        {% set other = graph.nodes.get(id) or (graph.get('sources') or {}).get(id) or {} %}
        {% if dbt_history._is_in_place(other, relation)
            and not (besides is not none and dbt_history._is_in_place(other, besides)) %}
            {% do return(true) %}
        {% endif %}
        {% if (other.get('config') or {}).get('materialized') == 'ephemeral' %}
            {% do ids.extend((other.get('depends_on') or {}).get('nodes', [])) %}
        {% endif %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{# Whether a node of the graph, or the one that dbt takes in its place, makes a table. #}
{% macro _is_in_place(node, relation) %}
    {% for place in [node, node.get('defer_relation') or {}]
        if (place.get('alias') or place.get('identifier') or '') | lower
            == relation.identifier | lower
        and (place.get('schema') or '') | lower == relation.schema | string | lower %}
        {% do return(true) %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{#
    The table whose rows a generic test with `where` gets, as the text `(select * from schema.table
    where …) dbt_subquery`: {'node', 'relation'}; none for other text.
#}
{% macro _filtered_table(text) %}
    {% set test = model if model is defined and model is mapping else {} %}
    {% if test.get('resource_type') != 'test' or not (test.get('config') or {}).get('where') %}
        {% do return(none) %}
    {% endif %}
    {% set read = (test.get('depends_on') or {}).get('nodes') or [] %}
    {% set id = test.get('attached_node') or (read[0] if read | length == 1 else none) %}
    {% set node = (graph.get('nodes') or {}).get(id) or (graph.get('sources') or {}).get(id) %}
    {% set plain = text.replace('`', '').split() | join(' ') | lower %}
    {% for table in [node or {}, (node or {}).get('defer_relation') or {}] if table %}
        {% set identifier = table.get('alias') or table.get('identifier') %}
        {% if ('from ' ~ table.schema ~ '.' ~ identifier ~ ' ') | lower in plain %}
            {% do return({'node': node, 'relation': api.Relation.create(
                database=table.get('database'), schema=table.schema, identifier=identifier,
            )}) %}
        {% endif %}
    {% endfor %}
    {% do return(none) %}
{% endmacro %}


{# The table of a generic test, also with `where`; none if it is not known. #}
{% macro _tested_table(tested) %}
    {% if tested is not string %}{% do return(tested) %}{% endif %}
    {% do return(
        (dbt_history._filtered_table(tested) or {}).get('relation')
            if execute and graph is defined else none
    ) %}
{% endmacro %}


{# The columns of a snapshot, by dbt's names for them. #}
{% macro _names_of_snapshot(node) %}
    {% set names = {} %}
    {% for column in [
        'dbt_valid_from', 'dbt_valid_to', 'dbt_scd_id', 'dbt_updated_at', 'dbt_is_deleted',
    ] %}
        {% set said = (node.config.get('snapshot_meta_column_names') or {}).get(column) %}
        {% do names.update({column: said or column}) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    How a snapshot stores a period, as a mapping: the convention that `said`, its `meta.history`,
    names, with the columns and the open end that dbt writes. `type`: that of its start.
#}
{% macro _convention_of_snapshot(node, type, said={}) %}
    {% set settings = {} if dbt_history._names_convention(said)
        else {'convention': 'dbt_snapshot'} %}
    {% for field in ['convention', 'start', 'end', 'active', 'type', 'open_end', 'gap']
        if field in said %}
        {% do settings.update({field: 'none' if said[field] is none else said[field]}) %}
    {% endfor %}
    {% set convention = dbt_history.convention(dict(settings, node=node.unique_id)) %}
    {% set names = dbt_history._names_of_snapshot(node) %}
    {% for part, column in {'start': 'dbt_valid_from', 'end': 'dbt_valid_to'}.items()
        if names[column] != convention[part] %}
        {% do settings.update({part: names[column]}) %}
    {% endfor %}
    {% do settings.update({'type': type} if type == 'date' else {}) %}
    {% set current = node.config.get('dbt_valid_to_current') %}
    {% if current %}
        {% set axis = {'type': settings.get('type', convention.type)} %}
        {% set number = run_query(
            'select ' ~ dbt_history._axis_number(
                'cast(' ~ current ~ ' as ' ~ axis.type ~ ')', axis,
            )
        ).rows[0][0] %}
        {% do settings.update({'open_end': dbt_history._axis_text(number, axis)}) %}
    {% elif convention.open_end is not none %}
        {% do settings.update({'open_end': 'none'}) %}
    {% endif %}
    {% do return(settings) %}
{% endmacro %}
