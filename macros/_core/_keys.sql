{#
    The key of a node's records, as a list, by the first of these that says one: `unique_key`,
    `meta.history.key`, a primary key among the constraints, the column that has the tests `unique`
    and `not_null`. Empty if none does, or if several columns have both tests. `has_versions`: a
    record has several rows, so that what is unique in the table is no key of the records.

        customer_sk    customer_id    valid_from
        1              A              March          customer_sk is unique, the key is customer_id
        2              A              April
#}
{% macro _key_of_node(node, has_versions=false) %}
    {% set meta = dbt_history._node_meta(node).get('history') %}
    {% set said = (node.get('config') or {}).get('unique_key')
        or (meta.get('key') if meta is mapping else none) %}
    {% if said or has_versions %}{% do return(dbt_history._key_columns(said)) %}{% endif %}
    {% set constrained = dbt_history._constrained_key(node) %}
    {% do return(constrained or dbt_history._tested_key(node)) %}
{% endmacro %}


{# The columns of a primary key constraint, of the model or of one of its columns. #}
{% macro _constrained_key(node) %}
    {% for constraint in node.get('constraints') or []
        if constraint.type | string | lower == 'primary_key' and constraint.get('columns') %}
        {% do return(constraint.columns | list) %}
    {% endfor %}
    {% set found = [] %}
    {% for column in (node.get('columns') or {}).values() %}
        {% for constraint in column.get('constraints') or []
            if constraint.type | string | lower == 'primary_key' %}
            {% do found.append(column.name) %}
        {% endfor %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# The column with the tests `unique` and `not_null`, as a list; empty unless there is just one. #}
{% macro _tested_key(node) %}
    {% set tested = {'unique': [], 'not_null': []} %}
    {% for test in (graph.get('nodes') or {}).values()
        if test.resource_type == 'test' and test.get('test_metadata') and test.get('column_name')
            and test.depends_on.nodes == [node.unique_id] %}
        {% if test.test_metadata.name in tested and not (test.config or {}).get('where') %}
            {% do tested[test.test_metadata.name].append(test.column_name) %}
        {% endif %}
    {% endfor %}
    {% set both = tested.unique | select('in', tested.not_null) | unique | list %}
    {% do return(both if both | length == 1 else []) %}
{% endmacro %}
