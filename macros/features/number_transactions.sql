{#
    Gives each visible transaction of a log the next number, without gaps: a lower number was
    visible earlier.

        log        txid 3    7 (foo)   7 (bar)   8 (message only)   9 (not visible)   10
        numbers    1         2         2         -                  -                 3

    The numbers are rows (txid, id, ts) of a separate table, written by one INSERT that reads the
    table it writes: of two concurrent jobs Delta refuses the later one, which tries again. Numbers
    never change; the log is only read. Call it as a run-operation or from a hook. Returns the
    number of newly numbered transactions.
#}
{% macro number_transactions(transactions, numbers, spaces=none, visible=none, dry_run=false) %}
    {% if not execute %}{% do return(0) %}{% endif %}
    {% if dbt_history._belongs_to_iceberg(numbers) %}
        {% do dbt_history._refuse_iceberg(
            numbers, 'number_transactions',
            'a Delta table of numbers: of two jobs at once it refuses one',
        ) %}
    {% endif %}
    {% set log_name, numbers_name = dbt_history._table_name(
        transactions
    ), dbt_history._table_name(numbers) %}
    {% set create = 'create table if not exists ' ~ numbers_name
        ~ ' (`txid` bigint, `id` bigint, `ts` timestamp) using delta' %}
    {% if dry_run %}
        {% do print(
            create ~ ';\n' ~ dbt_history._number_sql(log_name, numbers_name, spaces, visible) ~ ';'
        ) %}
        {% do return(0) %}
    {% endif %}
    {% do dbt_history._create_own_table(dbt_history._relation_of(numbers), create) %}
    {% set state = namespace(failed='conflict') %}
    {% for attempt in range(6) if state.failed == 'conflict' %}
        {% set state.failed = dbt_history._guarded_insert(
            dbt_history._number_sql(log_name, numbers_name, spaces, visible),
        ) %}
    {% endfor %}
    {% if state.failed is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'number_transactions', 'the transactions were not numbered; nothing was written',
            got='conflict with other writers, six times' if state.failed == 'conflict'
                else 'an error of Spark: ' ~ state.failed,
            way_out='run the job again' if state.failed == 'conflict'
                else 'check that the log has txid, schema and table (' ~ log_name ~ ')',
        )) %}
    {% endif %}
    {% set metrics = dbt_history._as_mapping(
        run_query('describe history ' ~ numbers_name ~ ' limit 1').rows[0]['operationMetrics']
    ) %}
    {% do log(
        'dbt_history: transactions of ' ~ log_name ~ ' are numbered in ' ~ numbers_name, info=true,
    ) %}
    {% do return(metrics.get('numOutputRows', 0) | int) %}
{% endmacro %}


{% macro _number_sql(log, numbers, spaces, visible) %}
    insert into {{ numbers }}
    with waiting as (
        select
            `txid`,
            {{ 'min(' ~ dbt_history._quote(visible) ~ ')' if visible
                else 'cast(null as timestamp)' }} as visible
        from {{ log }} as entries
        where `schema` <> 'COMMIT_MSG'
            {{ 'and ' ~ dbt_history._quote(visible) ~ ' is not null' if visible }}
            {{ 'and `table` in (' ~ dbt_history._texts(spaces) ~ ')' if spaces is not none }}
        group by `txid`
    ),

    last_number as (
        select coalesce(max(`id`), 0) as id from {{ numbers }}
    )

    select
        waiting.`txid`,
        last_number.id + row_number() over (order by waiting.visible, waiting.`txid`) as `id`,
        current_timestamp() as `ts`
    from waiting
    left anti join {{ numbers }} as numbered
        on waiting.`txid` = numbered.`txid`
    cross join last_number
{% endmacro %}


{% macro _texts(values) %}
    {%- set quoted = [] -%}
    {%- for value in dbt_history._key_columns(values) -%}
        {%- do quoted.append(dbt_history._string_literal(value)) -%}
    {%- endfor -%}
    {%- do return(quoted | join(', ') or "''") -%}
{% endmacro %}
