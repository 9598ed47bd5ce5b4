{#
    Evaluates the model's SELECT once: a view gives its errors and types, and a copy of its result
    is read by the plan query and by every merge. The copy is a cached table in Spark, filled by the
    plan query and defined by the analysed plan, so that a SELECT with rand() or uuid() keeps its
    values. In three cases a MERGE would not use the cache, and the copy is a real table: a WITH, in
    the SELECT or in a view that it reads (MERGE inlines it); the current time (MERGE replaces it);
    and the model's own table (the first commit clears the cache).

    By `__evaluated_at` the merge checks that it reads the same rows as the plan query.
    Returns {'view', 'relation', 'is_table', 'columns': [{'name', 'type'}], 'names': {lower name:
    name}}.
#}
{% macro _stage_batches(select_sql, target, before) %}
    {% set staged = dbt_history._staged_view(select_sql) %}
    {% set view, columns, id = staged.view, staged.columns, staged.id %}
    {% set is_table = dbt_history._begins_with_cte(select_sql)
        or dbt_history._merge_reads_twice(target) or dbt_history._needs_table(view, target) %}
    {% set copy = dbt_history._quote(model.name ~ '__batches_' ~ id) %}
    {% if is_table %}
        {% set copy = dbt_history._quoted_relation(target.incorporate(
            path={'identifier': model.name ~ '__batches_' ~ id}
        )) %}
        {% do run_query(
            'create table ' ~ copy ~ ' using parquet as ' ~ dbt_history._copy_sql(view, columns)
        ) %}
    {% else %}
        {% do dbt_history._guarded_statement(
            'cache lazy table ' ~ copy ~ ' as ' ~ dbt_history._copy_sql(view, columns),
            {'spark.sql.legacy.storeAnalyzedPlanForView': 'true'},
            before,
        ) %}
    {% endif %}
    {% do return(dict(staged, relation=copy, is_table=is_table)) %}
{% endmacro %}


{#
    Each row has the time of its evaluation: a time later than that of the plan's last row proves
    that the row was evaluated again. Parquet has no type for untyped NULLs and empty arrays.
#}
{% macro _copy_sql(view, columns) %}
    {%- set typed = {'void': 'string', 'array<void>': 'array<string>'} -%}
    select
        {%- for column in columns %}
        {%- set name = dbt_history._quote(column.name) %}
        {{ 'cast(' ~ name ~ ' as ' ~ typed[column.type] ~ ') as ' ~ name
            if column.type in typed else name }},
        {%- endfor %}
        cast(java_method('java.lang.System', 'currentTimeMillis') as bigint) as `__evaluated_at`
    from {{ view }}
{% endmacro %}


{# Whether the text shows the WITH; then its plan need not be made. #}
{% macro _begins_with_cte(select_sql) %}
    {% do return(
        modules.re.match(
            '(?is)(?:\\s|--[^\n]*\n|/[*](?:(?!/[*]).)*?[*]/)*with\\s', select_sql,
        ) is not none
    ) %}
{% endmacro %}


{#
    Searches the analysed plan, in which views are resolved; the text of the SELECT does not show
    what its views contain. EXPLAIN also optimizes and plans, which takes seconds of CPU for a
    SELECT of many windows: with LIMIT 0 Spark has nothing left to plan.
#}
{% macro _needs_table(view, target) %}
    {% set analysed = dbt_history._analysed_plan('select * from ' ~ view ~ ' limit 0') | lower %}
    {% set own = (target.schema ~ '.' ~ target.identifier) | lower %}
    {% do return(
        'withcte' in analysed
        or modules.re.search(
            '(current_timestamp|current_date|current_time|curdate|localtimestamp|now)[(]', analysed,
        ) is not none
        or modules.re.search('[.]' ~ modules.re.escape(own) ~ '\\b', analysed) is not none
    ) %}
{% endmacro %}


{#
    The analysed plan of a SELECT as text. EXPLAIN shows 25 of its columns; if there are more, it is
    repeated without this limit. It returns an error as text, so that the setting is reset then,
    too.
#}
{% macro _analysed_plan(select_sql) %}
    {% set limit = 'spark.sql.debug.maxToStringFields' %}
    {% set explain = 'explain extended ' ~ select_sql %}
    {% set end = '== Optimized Logical Plan ==' %}
    {% set plan = run_query(explain).rows[0][0].split(end)[0] %}
    {% if ' more fields' in plan %}
        {% set before = dbt_history._session_settings([limit]) %}
        {% do run_query(dbt_history._set_sql(limit, 1000000)) %}
        {% set plan = run_query(explain).rows[0][0].split(end)[0] %}
        {% do run_query(
            'reset ' ~ limit if before.get(limit) is none
                else dbt_history._set_sql(limit, before[limit])
        ) %}
    {% endif %}
    {% do return(plan) %}
{% endmacro %}
