{% macro _default_location(relation) %}
    {% set found = namespace(location=none) %}
    {% for row in run_query('describe schema extended ' ~ dbt_history._quote(relation.schema)).rows
        if row[0] == 'Location' %}
        {% set found.location = row[1] ~ '/' ~ relation.identifier %}
    {% endfor %}
    {% do return(found.location) %}
{% endmacro %}


{#
    A relation with every part quoted: names may need it, and Delta's commands reject a bare
    `history`.
#}
{% macro _quoted_relation(relation) %}
    {%- set parts = (relation.schema | string).replace('`', '').split('.')
        + [relation.identifier] -%}
    {%- set quoted = [] -%}
    {%- for part in parts -%}{%- do quoted.append(dbt_history._quote(part)) -%}{%- endfor -%}
    {%- do return(quoted | join('.')) -%}
{% endmacro %}


{# The relation of a source as records name it. #}
{% macro _relation_of_source(source) %}
    {% set parts = source.replace('`', '').split('.') %}
    {% do return(api.Relation.create(schema=parts[:-1] | join('.'), identifier=parts[-1])) %}
{% endmacro %}


{# The table of a model, or `schema.table`. #}
{% macro _history_named(table, caller_name) %}
    {% set parts = (table | string).replace('`', '').split('.') %}
    {% set found = namespace(relation=none) %}
    {% if parts | length == 1 %}
        {% set named, aliased = [], [] %}
        {% for node in graph.nodes.values() if node.resource_type == 'model' %}
            {% do named.append(node) if parts[0] == node.name %}
            {% do aliased.append(node) if parts[0] == node.alias %}
        {% endfor %}
        {% set node = dbt_history._only_node(named or aliased, parts[0], caller_name) %}
        {% if node is not none %}
            {% set found.relation = adapter.get_relation(
                database=node.database, schema=node.schema, identifier=node.alias,
            ) %}
        {% endif %}
    {% else %}
        {% set found.relation = adapter.get_relation(
            database=none, schema=parts[:-1] | join('.'), identifier=parts[-1],
        ) %}
    {% endif %}
    {% if found.relation is none or found.relation.is_view %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'there is no such history table', got=table,
            expected='the name of a model that has run, or schema.table',
        )) %}
    {% endif %}
    {% do return(found.relation) %}
{% endmacro %}


{#
    The model, snapshot or seed with this name, unique id or schema.table; none if there is none.
    Refused if several have the name.
#}
{% macro _node_named(name, caller_name=none) %}
    {% set exact, named = [], [] %}
    {% for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] %}
        {% do exact.append(node)
            if name in [node.unique_id, node.schema ~ '.' ~ node.alias] %}
        {% do named.append(node) if name == node.name %}
    {% endfor %}
    {% do return(exact[0] if exact else dbt_history._only_node(named, name, caller_name)) %}
{% endmacro %}


{#
    The node that has this name; none if there is none. The versions of a model have one name, and
    so may the models of two packages.
#}
{% macro _only_node(nodes, name, caller_name) %}
    {% if nodes | length > 1 %}
        {% set tables = [] %}
        {% for node in nodes %}{% do tables.append(node.schema ~ '.' ~ node.alias) %}{% endfor %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'several nodes of the project have this name; nothing was done', got=name,
            expected='one of ' ~ tables | sort | join(', '),
            way_out='name the table as schema.table',
        )) %}
    {% endif %}
    {% do return(nodes[0] if nodes else none) %}
{% endmacro %}


{# By what `_node_named` finds a node: its name or, if several nodes have it, schema.table. #}
{% macro _unmistakable_names(nodes) %}
    {% set names, found = [], [] %}
    {% for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] %}
        {% do names.append(node.name) %}
    {% endfor %}
    {% for node in nodes %}
        {% set is_shared = names | select('equalto', node.name) | list | length > 1 %}
        {% do found.append(node.schema ~ '.' ~ node.alias if is_shared else node.name) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# A relation by its name, whether or not it exists. #}
{% macro _named_relation(table, caller_name) %}
    {% if table is not string %}
        {% do return(table) %}
    {% endif %}
    {% set parts = table.replace('`', '').split('.') %}
    {% if parts | length > 2 or not parts[-1] | trim %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'this is not the name of a table', got=table,
            expected='schema.table or table',
        )) %}
    {% endif %}
    {% do return(api.Relation.create(
        schema=parts[0] if parts | length == 2 else target.schema, identifier=parts[-1],
        type='table'
    )) %}
{% endmacro %}


{% macro _count_rows(relation, condition) %}
    {% do return(
        run_query(
            'select count(*) from ' ~ dbt_history._quoted_relation(relation) ~ ' where ' ~ condition
        ).rows[0][0] | int
    ) %}
{% endmacro %}


{# One relation, text or mapping, or a list of them, as a list. #}
{% macro _tables_named(tables) %}
    {# A relation is a mapping, too. #}
    {% set is_one = tables is string or tables is mapping %}
    {% do return([tables] if is_one else tables) %}
{% endmacro %}


{# The relation that `_table_name` refers to. #}
{% macro _relation_of(table) %}
    {% if table is not string %}{% do return(table) %}{% endif %}
    {% set parts = table.replace('`', '').split('.') %}
    {% do return(api.Relation.create(
        database=none, schema=parts[-2] if parts | length > 1 else target.schema,
        identifier=parts[-1],
    )) %}
{% endmacro %}


{# Whether a relation is an ephemeral model. In a unit test of dbt each model is a CTE. #}
{% macro _is_ephemeral(relation) %}
    {% do return(
        relation is not string and relation.is_cte and not dbt_history._is_unit_test()
    ) %}
{% endmacro %}


{% macro _refuse_ephemeral(relation, caller_name) %}
    {% if dbt_history._is_ephemeral(relation) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'an ephemeral model has no table', got=relation,
            expected='a relation of the database', node=dbt_history._node_of_context(),
            way_out='give the model another materialization',
        )) %}
    {% endif %}
{% endmacro %}


{#
    The relation of a caller, as dbt's cache has it; none if it does not exist. The cache cannot
    look up a CTE, which has no schema.
#}
{% macro _loaded(relation, caller_name) %}
    {% do dbt_history._refuse_ephemeral(relation, caller_name) %}
    {% do return(
        none if relation is not string and relation.is_cte else load_relation(relation)
    ) %}
{% endmacro %}


{#
    A table that dbt's cache lacks because another process made it after dbt had listed the schema;
    none if there is none. The cache gets it. The schema must exist.
#}
{% macro _made_meanwhile(relation) %}
    {% set found = run_query(
        'show tables in ' ~ dbt_history._quote(relation.schema) ~ ' like '
            ~ dbt_history._string_literal(relation.identifier)
    ).rows %}
    {% for row in found
        if row['tableName'] | lower == relation.identifier | lower and not row['isTemporary'] %}
        {% set made = relation.incorporate(type='table') %}
        {% do adapter.cache_added(made) %}
        {% do return(made) %}
    {% endfor %}
    {% do return(none) %}
{% endmacro %}


{#
    A table argument of an operation as SQL: a relation, or text as `schema.table`; without a
    schema, the target's.
#}
{% macro _table_name(table) %}
    {%- if table is not string -%}
        {%- do return(dbt_history._quoted_relation(table)) -%}
    {%- endif -%}
    {%- set parts = table.replace('`', '').split('.') -%}
    {%- do return(
        dbt_history._quoted(parts if parts | length > 1 else [target.schema] + parts) | join('.')
    ) -%}
{% endmacro %}
