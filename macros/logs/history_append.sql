{#
    A log: appends the rows of the SELECT exactly once, in one commit; rows are never changed.
    Validate, resolve, plan, write, verify, document, return: see docs/flow/history_append.md.
#}
{% materialization history_append, adapter='spark', supported_languages=['sql'] %}
    {% set existing_relation = load_relation(this) %}
    {% set target_relation = dbt_history._target(this, existing_relation) %}
    {% set settings = dbt_history._append_settings(model, 'history_append') %}
    {% set full_refresh = dbt_history._full_refresh(
        existing_relation, settings, 'history_append',
    ) %}

    {{ run_hooks(pre_hooks) }}

    {% set result = dbt_history._append_rows(
        target_relation, existing_relation, compiled_code, settings, full_refresh, 'history_append',
    ) %}

    {% do dbt_history._persist_docs(target_relation) %}
    {% do apply_grants(
        target_relation, config.get('grants'), should_revoke(existing_relation, full_refresh),
    ) %}

    {{ run_hooks(post_hooks) }}

    {% call noop_statement('main', result.message, 'history_append', result.added) %}
        -- {{ result.message }}
    {% endcall %}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
