{#
    Evaluates the model's SELECT once: a view for its errors and types, and a copy of what it
    returns, which the plan query and every merge read. The copy is a cache in Spark, filled by the
    plan query, with the plan stored as analysed, so that a SELECT with rand() or uuid() keeps its
    values. Three things miss the cache inside a MERGE, and get a table of their own: a WITH, in the
    SELECT or in a view below it (MERGE inlines it); the current time (MERGE sets it anew); and the
    model's own table (the first commit empties the cache).

    `__evaluated_at` tells the merge whether the rows are still those the plan saw.
    Returns {'view', 'relation', 'is_table', 'columns': [{'name', 'type'}], 'names': {lower name:
    name}}.
#}
{% macro _stage_batches(select_sql, target, before) %}
    {% set staged = dbt_history._staged_view(select_sql) %}
    {% set view, columns, id = staged.view, staged.columns, staged.id %}
    {% set is_table = dbt_history._merge_reads_twice(target)
        or dbt_history._needs_table(view, target) %}
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
    The clock is read for each row where the row is made: later than the plan's last row means made
    again.
#}
{% macro _copy_sql(view, columns) %}
    select
        {%- for column in columns %}
        {{ 'cast(null as string) as '
            if column.type == 'void' }}{{ dbt_history._quote(column.name) }},
        {%- endfor %}
        cast(java_method('java.lang.System', 'currentTimeMillis') as bigint) as `__evaluated_at`
    from {{ view }}
{% endmacro %}


{#
    Reads the analysed plan, views resolved: the SQL text alone does not show what a view below it
    does.
#}
{% macro _needs_table(view, target) %}
    {% set plan = run_query('explain extended select * from ' ~ view).rows[0][0] | lower %}
    {% set analysed = plan.split('== optimized logical plan ==')[0] %}
    {% set own = (target.schema ~ '.' ~ target.identifier) | lower %}
    {% do return(
        'withcte' in analysed
        or modules.re.search(
            '(current_timestamp|current_date|current_time|curdate|localtimestamp|now)[(]', analysed,
        ) is not none
        or modules.re.search('[.]' ~ modules.re.escape(own) ~ '\\b', analysed) is not none
    ) %}
{% endmacro %}
