{#
    Run-operation: prints a history model for each model, seed and source with
    `meta: {history: true}`, and a yml file with their tests. `dbt-history generate` runs it and
    writes the files; a second run changes nothing.

    Instead of true: {kind: hx | events, key: …, references: [{column: …, history: …}], name: …}.
    The kind is `kind`, else `meta.history_kind`, which may be set for a folder or a source, else
    hx.
    The key is `key`, else `unique_key` of a model, else the constraint `primary_key`, else the
    column with the tests `unique` and `not_null`; `name` is the name of the new model (default:
    x_hx, and x_history for events).

    `table`: only these of them, by the names of the models and sources. `dry_run`: the names of the
    files, without their text.
#}
{% macro generate_history(folder='models/history', table='all', dry_run=false) %}
    {% set wanted = [table] if table is string else table %}
    {% set tracked, problems = [], [] %}
    {% for node in (
        graph.nodes.values() | list + graph.sources.values() | list
    ) | sort(attribute='unique_id') %}
        {% set problem = dbt_history._meta_problem(node) %}
        {% if problem is not none %}
            {% do problems.append(node.unique_id ~ ': ' ~ problem) %}
        {% elif (wanted == ['all'] or node.name in wanted)
            and dbt_history._node_meta(node).get('history') and dbt_history._is_tracked(node) %}
            {% do tracked.append(dbt_history._generated_model(
                node, dbt_history._history_meta(node, 'generate_history'), problems,
            )) %}
        {% endif %}
    {% endfor %}
    {% for name in wanted
        if name != 'all' and name not in tracked | map(attribute='of') | list %}
        {% do problems.append(name ~ ': no model, seed or source of this name is tracked') %}
    {% endfor %}
    {% for name, of in (tracked | groupby('name')) if of | length > 1 %}
        {% do problems.append(
            of | map(attribute='main') | join(', ') ~ ' would have the same model ' ~ name
                ~ ': name one with meta: {history: {name: …}}'
        ) %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'generate_history', 'some tables cannot be tracked; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            expected='meta: {history: true} on a model or source with unique_key, a primary key or'
                ~ ' one unique column that is not null, or meta: {history: {key: …}}',
        )) %}
    {% endif %}
    {% if dry_run %}
        {% for table in tracked %}
            {% do log(
                'dbt_history: ' ~ folder ~ '/' ~ table.name ~ '.sql would be the history of '
                    ~ table.main,
                info=true,
            ) %}
        {% endfor %}
        {% do return(none) %}
    {% endif %}
    {% for table in tracked %}
        {% do print(
            '-- file: ' ~ folder ~ '/' ~ table.name ~ '.sql\n' ~ dbt_history._generated_sql(table)
                ~ '\n-- end of file'
        ) %}
    {% endfor %}
    {% if tracked %}
        {% do print(
            '-- file: ' ~ folder ~ '/_history__models.yml\n' ~ dbt_history._generated_yml(tracked)
                ~ '\n-- end of file'
        ) %}
    {% endif %}
{% endmacro %}


{#
    A history model has its own settings under `meta.history`, and a seed may have the marker of
    `spark__load_csv_rows` there, which alone does not ask for a history.
#}
{% macro _is_tracked(node) %}
    {% set meta = dbt_history._history_meta(node, 'generate_history') %}
    {% if node.resource_type == 'seed' and meta.keys() | list == ['empty_string'] %}
        {% do return(false) %}
    {% endif %}
    {% set is_history = (node.config.get('materialized') or '').startswith('history')
        or node.config.get('incremental_strategy') == 'history_batch' %}
    {% if dbt_history._names_convention(meta) and not is_history %}
        {% set is_history = dbt_history._node_convention(node, meta, none) is not none %}
    {% endif %}
    {% do return(node.resource_type in ['model', 'source', 'seed'] and not is_history) %}
{% endmacro %}
