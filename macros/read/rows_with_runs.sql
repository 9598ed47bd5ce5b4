{#
    The rows of a history table, each with the run of dbt that wrote it, as a sub-query to put after
    FROM: the table's columns, the commit that the row came with (`_commit_version`), and of the run
    that made this commit `_invocation_id`, `_author`, `_application`, `_message`.

        commits of the table    3          4          5
        made by                 ann's run  bob's run  by hand
        _invocation_id          6f1c…      90ab…      NULL

    A row that OPTIMIZE, RESTORE or MERGE rewrites unchanged keeps its commit. Delta keeps the
    commit of each row if the table has row tracking:
    tblproperties={'delta.enableRowTracking': 'true'} in the model. Rows from before it was turned
    on belong to no run. A version that was closed later belongs to the run that closed it. `runs`:
    the model that keeps `history_runs`, or that sub-query itself.
#}
{% macro rows_with_runs(relation, runs) %}
    {%- if execute -%} {%- do dbt_history._refuse_untracked(relation) -%} {%- endif -%}
    {%- set said = ['invocation_id', 'author', 'application', 'message'] -%}
    {%- set sql -%}
(
    select
        history.*
        {%- for name in said %},
        runs.`{{ name }}` as `_{{ name }}`
        {%- endfor %}
    from (
        select
            *,
            `_metadata`.`row_commit_version` as `_commit_version`
        from {{ relation }}
    ) as history
    left join (
        select distinct
            `{{ said | join('`, `') }}`,
            explode(`versions`) as version
        from {{ runs }} as written
        where `schema` = {{ dbt_history._string_literal(relation.schema) }}
            and `table` = {{ dbt_history._string_literal(relation.identifier) }}
    ) as runs
        on history.`_commit_version` = runs.version
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    Only Delta, and only with row tracking, knows which commit a row came with. A table that is not
    there yet may get it.
#}
{% macro _refuse_untracked(relation) %}
    {% set table = dbt_history._with_format(load_relation(relation)) %}
    {% if table is none %} {% do return(none) %} {% endif %}
    {% set is_delta = not table.is_view and not table.is_iceberg %}
    {% if not is_delta or dbt_history._table_property(table, 'delta.enableRowTracking') != 'true' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rows_with_runs', 'this relation does not say which commit a row came with',
            got=relation ~ (' without row tracking' if is_delta else ', no Delta table'),
            expected='a Delta table with delta.enableRowTracking',
            way_out="tblproperties={'delta.enableRowTracking': 'true'} in the model of a new"
                ~ " table; for one that is there: alter table "
                ~ relation ~ " set tblproperties ('delta.enableRowTracking' = 'true')",
        )) %}
    {% endif %}
{% endmacro %}
