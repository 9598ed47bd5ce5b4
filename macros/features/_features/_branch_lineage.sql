{#
    A branch as a reader needs it: {'facts', 'epochs', 'epoch'}; a branch that does not exist is
    refused.
#}
{% macro _branch_lineage(branches, branch, caller_name) %}
    {% set facts = dbt_history._branch_facts(branches) %}
    {% set epochs = dbt_history._branch_epochs(facts) %}
    {% set epoch = dbt_history._present_epoch(epochs, branch) %}
    {% if epoch is none and branch != 'main' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'there is no branch of this name', got=branch,
            expected='main, or a branch that create_branch made and drop_branch did not take away',
        )) %}
    {% endif %}
    {% do return({'facts': facts, 'epochs': epochs, 'epoch': epoch}) %}
{% endmacro %}


{#
    True, or an error if a fork, rebase or drop was added after the SQL was compiled, which can
    happen with a view. None for main.
#}
{% macro _branches_unchanged(branches, facts, branch, caller_name) %}
    {%- if branch == 'main' -%} {%- do return(none) -%} {%- endif -%}
    {%- set message = dbt_history._message(
        caller_name, 'the branch was rebased or dropped after this was compiled', got=branch,
        way_out='build the model again',
    ) -%}
    {%- set sql -%}
(
    select
        if(
            count_if(
                `kind` <> 'fork' or `branch` = {{ dbt_history._string_literal(branch) }}
            ) = {{ dbt_history._facts_about(facts, branch) }},
            true,
            raise_error({{ dbt_history._text_on_one_line(message) }})
        )
    from {{ dbt_history._quoted_relation(dbt_history._branches_relation(branches)) }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    Facts that may change the content of a branch: its own, and rebases and drops of any other
    branch.
#}
{% macro _facts_about(facts, branch) %}
    {%- set about = [] -%}
    {%- for fact in facts if fact.kind != 'fork' or fact.branch == branch -%}
        {%- do about.append(fact) -%}
    {%- endfor -%}
    {%- do return(about | length) -%}
{% endmacro %}


{#
    The three sides of a branch, for a reader: {'features', 'ctes', 'unchanged'}; the last one is a
    term for its WHERE, because the bases of the branch are constants of the SQL.
#}
{% macro _sides_of(states, branches, branch, id, payload, json, caller_name) %}
    {% set line = dbt_history._branch_lineage(branches, branch, caller_name) %}
    {% if line.epoch is none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'main has no base', got=branch, expected='the name of a branch',
        )) %}
    {% endif %}
    {% set features = dbt_history._features_of(
        dbt_history._table_columns(states), dbt_history._key_columns(id), payload, json,
    ) %}
    {% do return({
        'features': features,
        'ctes': dbt_history._sides_ctes(features, states, line.epochs, line.epoch),
        'unchanged': dbt_history._branches_unchanged(branches, line.facts, branch, caller_name),
    }) %}
{% endmacro %}


{# A content as a struct with the column names; NULL if the feature does not exist. #}
{% macro _named_content(features, side) %}
    {%- set parts = [] -%}
    {%- for name in features.payload -%}
        {%- do parts.append(
            dbt_history._string_literal(name) ~ ', ' ~ side ~ '.p' ~ loop.index0
        ) -%}
    {%- endfor -%}
    {%- do return('if(' ~ side ~ ' is null, null, named_struct(' ~ parts | join(', ') ~ '))') -%}
{% endmacro %}
