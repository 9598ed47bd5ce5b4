{#
    The rows of a history table, each with the dbt run that wrote it, as a sub-query for the FROM
    clause: the table's columns, the commit that wrote the row (`_commit_version`), and the run of
    this commit: `_invocation_id`, `_author`, `_application`, `_message`.

        commits of the table    3          4          5
        made by                 ann's run  bob's run  by hand
        _invocation_id          6f1c…      90ab…      NULL

    Delta keeps the commit of each row if the table has row tracking:
    tblproperties={'delta.enableRowTracking': 'true'} in the model. OPTIMIZE, RESTORE and a MERGE
    that does not change the row preserve it. Rows written before row tracking was enabled have no
    run. A version that was closed later has the run that closed it. A table that was dropped and
    built again gives its versions again: the latest run with a version applies. `runs`: the model
    that stores `history_runs`, or that sub-query itself.
#}
{% macro rows_with_runs(relation, runs) %}
    {%- if execute -%} {%- do dbt_history._refuse_untracked(relation) -%} {%- endif -%}
    {%- set said = ['invocation_id', 'author', 'application', 'message'] -%}
    {%- set sql -%}
(
    with

    commits as (

        select
            `{{ said | join('`, `') }}`,
            `at`,
            `last_version`,
            explode(`versions`) as version
        from {{ runs }} as written
        where `schema` = {{ dbt_history._string_literal(relation.schema) }}
            and `table` = {{ dbt_history._string_literal(relation.identifier) }}

    ),

    runs as (

        select
            version,
            max_by(struct(`{{ said | join('`, `') }}`), struct(`at`, `last_version`)) as run
        from commits
        group by version

    ),

    history as (

        select
            *,
            `_metadata`.`row_commit_version` as `_commit_version`
        from {{ relation }}

    )

    select
        history.*
        {%- for name in said %},
        runs.run.`{{ name }}` as `_{{ name }}`
        {%- endfor %}
    from history
    left outer join runs on history.`_commit_version` = runs.version
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    Only Delta tables with row tracking record the commit of a row. A table that does not exist yet
    may get row tracking.
#}
{% macro _refuse_untracked(relation) %}
    {% set table = dbt_history._with_format(
        dbt_history._loaded(relation, 'rows_with_runs')
    ) %}
    {% if table is none %} {% do return(none) %} {% endif %}
    {% set is_delta = not table.is_view and not table.is_iceberg %}
    {% if not is_delta or dbt_history._table_property(table, 'delta.enableRowTracking') != 'true' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rows_with_runs', 'this relation does not record the commit of each row',
            got=relation ~ (' without row tracking' if is_delta else ', not a Delta table'),
            expected='a Delta table with delta.enableRowTracking',
            way_out="tblproperties={'delta.enableRowTracking': 'true'} in the model of a new"
                ~ " table; for one that is there: alter table "
                ~ relation ~ " set tblproperties ('delta.enableRowTracking' = 'true')",
        )) %}
    {% endif %}
{% endmacro %}
