{#
    Run-operation of `dbt-history doctor`: prints what the session and the project's history models
    are, as one line of JSON. Nothing is evaluated here.
#}
{% macro _doctor_facts() %}
    {% set spark = run_query('select version()').rows[0][0] %}
    {% set delta = none %}
    {% if (spark | string).split('.')[0] | int >= 4 %}
        {# Fails if the session has no jars of Delta, as `dbt-history doctor` knows. #}
        {% set delta = run_query("select try_reflect('io.delta.package', 'VERSION')").rows[0][0] %}
    {% endif %}
    {% set settings = {} %}
    {% for name in [
        'spark.sql.extensions', 'spark.sql.catalog.spark_catalog', 'spark.sql.session.timeZone',
        'spark.sql.shuffle.partitions', 'spark.databricks.delta.snapshotPartitions',
        'spark.sql.timestampType',
    ] %}
        {% set row = run_query('set ' ~ name).rows[0] %}
        {% do settings.update({name: row[1] if row[1] != '<undefined>' else none}) %}
    {% endfor %}
    {% set sources, compared = {}, [] %}
    {% for node in graph.nodes.values() if node.resource_type == 'model' %}
        {% set is_history = node.config.materialized == 'history' %}
        {% set reads_feed = dbt_history._calls_capture(node)
            or is_history and dbt_history._is_raw_select_of_table(node.raw_code) %}
        {% do compared.append(node.name)
            if is_history and not reads_feed and not dbt_history._is_of_changes(node) %}
        {% for id in node.depends_on.nodes if reads_feed %}
            {% set read = graph.nodes.get(id) or graph.sources.get(id) %}
            {% if read and read.resource_type in ['source', 'model', 'seed'] %}
                {% do sources.update({id: dbt_history._doctor_source(read)}) %}
            {% endif %}
        {% endfor %}
    {% endfor %}
    {% do print('-- facts: ' ~ tojson({
        'spark': spark, 'delta': delta, 'settings': settings,
        'threads': target.threads,
        'method': adapter.config.credentials.method | default(none),
        'sources': sources.values() | select('mapping') | list,
        'compared': compared,
    })) %}
{% endmacro %}


{#
    Whether the code of a model calls a macro that reads the feed of a table; dbt records no calls
    inside of other macros.
#}
{% macro _calls_capture(node) %}
    {% set macros = node.depends_on.get('macros') or [] %}
    {% for name in ['changes', 'hx_rows', 'event_rows', 'core_temp_history']
        if 'macro.dbt_history.' ~ name in macros %}
        {% do return(true) %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{# Whether the SELECT of a `history` model returns only changed records. #}
{% macro _is_of_changes(node) %}
    {% set settings = dbt_history._node_meta(node).get('history') %}
    {% do return(settings is mapping and settings.get('source') == 'changes') %}
{% endmacro %}


{# A table that history models read: its name, and whether it is Delta and has a feed. #}
{% macro _doctor_source(node) %}
    {% set relation = load_relation(api.Relation.create(
        database=node.database, schema=node.schema, identifier=node.identifier or node.alias,
    )) %}
    {% if relation is none %}
        {% do return(none) %}
    {% endif %}
    {% set feed = relation.is_delta and dbt_history._table_property(
        relation, 'delta.enableChangeDataFeed',
    ) == 'true' %}
    {% do return({
        'table': relation | string, 'is_table': relation.type == 'table',
        'is_delta': relation.is_delta or false, 'feed': feed or false,
    }) %}
{% endmacro %}
