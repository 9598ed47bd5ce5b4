{#
    The dbt runs that wrote history tables, as a sub-query for the FROM clause: one row per run and
    table, with author, application, message and row counts. A run that writes several tables is one
    transaction.

        select *
        from {{ dbt_history.history_runs([ref('customers'), ref('contracts_hx')]) }} as runs

    The commits of the tables are read when the model is compiled. Author, application and message
    come from the environment of the run: DBT_HISTORY_AUTHOR (default the user of the session),
    DBT_HISTORY_APPLICATION, DBT_HISTORY_MESSAGE. `versions` lists the run's commits;
    `rows_with_runs` joins each row of a table to the run that wrote it. Delta removes old commits
    from its log: a `history_append` model with unique_key ['invocation_id', 'schema', 'table',
    'last_version'] keeps the rows permanently. (A run that was read before it had finished has two
    rows; the later one applies.)
#}
{% macro history_runs(tables) %}
    {%- set runs = {} -%}
    {%- for table in dbt_history._tables_named(tables) if execute -%}
        {%- set table = dbt_history._relation_of(table) -%}
        {%- set relation = dbt_history._loaded(table, 'history_runs') -%}
        {%- if relation is not none -%}
            {%- set entries = dbt_history._history_entries(relation) -%}
            {%- set times = {} if relation.is_iceberg else dbt_history._micros_of_all(entries) -%}
            {%- for entry in entries
                if entry.record is not none and entry.record.get('invocation_id') -%}
                {%- do dbt_history._count_run(
                    runs, table, entry, times.get(entry.version, entry.micros),
                ) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set columns = {
        'invocation_id': 'string', 'schema': 'string', 'table': 'string', 'author': 'string',
        'application': 'string', 'message': 'string',
        'commits': 'bigint', 'inserted': 'bigint', 'updated': 'bigint', 'deleted': 'bigint',
        'first_version': 'bigint', 'last_version': 'bigint',
        'versions': 'array<bigint>', 'at': 'timestamp',
    } -%}
    {#- One inline table of literals: Spark's parser cannot read thousands of UNION ALL. -#}
    {%- set lines, cells = [], [] -%}
    {%- for run in (runs or {'none': {}}).values() -%}
        {%- set literals = [] -%}
        {%- for name, type in columns.items() -%}
            {%- set value = run.get(name) -%}
            {%- do literals.append(
                'null' if value is none
                    else dbt_history._string_literal(value | join(',')) if name == 'versions'
                    else dbt_history._string_literal(value) if type == 'string' else value
            ) -%}
        {%- endfor -%}
        {%- do lines.append('(' ~ literals | join(', ') ~ ')') -%}
    {%- endfor -%}
    {%- for name, type in columns.items() -%}
        {%- set quoted = dbt_history._quote(name) -%}
        {%- set cell = "split(cast(" ~ quoted ~ " as string), ',')" if name == 'versions'
            else 'timestamp_micros(cast(' ~ quoted ~ ' as bigint))' if name == 'at' else quoted -%}
        {%- do cells.append('cast(' ~ cell ~ ' as ' ~ type ~ ') as ' ~ quoted) -%}
    {%- endfor -%}
    {%- do return(
        '(\n    select\n        ' ~ cells | join(',\n        ') ~ '\n    from values\n        '
            ~ lines | join(',\n        ')
            ~ '\n        as runs(' ~ dbt_history._quoted(columns) | join(', ') ~ ')'
            ~ '\n    where `invocation_id` is not null\n)'
    ) -%}
{% endmacro %}


{# Adds a commit to its run; commits are ordered newest first. #}
{% macro _count_run(runs, table, entry, micros) %}
    {% set name = entry.record.invocation_id ~ ' ' ~ table %}
    {% if name not in runs %}
        {% do runs.update({name: {
            'invocation_id': entry.record.invocation_id, 'schema': table.schema,
            'table': table.identifier,
            'author': entry.record.get('author') or entry.user,
            'application': entry.record.get('application'), 'message': entry.record.get('message'),
            'commits': 0, 'inserted': 0, 'updated': 0, 'deleted': 0, 'last_version': entry.version,
            'versions': [],
            'at': micros,
        }}) %}
    {% endif %}
    {% set run = runs[name] %}
    {% set metrics = entry.metrics %}
    {% set is_merge = entry.operation == 'MERGE' %}
    {% do run.update({
        'commits': run.commits + 1, 'first_version': entry.version,
        'versions': [entry.version] + run.versions,
        'inserted': run.inserted
            + metrics.get('numTargetRowsInserted' if is_merge else 'numOutputRows', 0) | int,
        'updated': run.updated + metrics.get('numTargetRowsUpdated', 0) | int,
        'deleted': run.deleted + metrics.get('numTargetRowsDeleted', 0) | int,
    }) %}
{% endmacro %}
