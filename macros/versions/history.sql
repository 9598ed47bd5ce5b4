{#
    A version table from a SELECT of what there is now: captures what changed, and applies it as one
    batch of `history_batch`. See docs/guides/history.md.
#}
{% materialization history, adapter='spark', supported_languages=['sql'] %}
    {% set existing_relation = load_relation(this) %}
    {% set target_relation = dbt_history._target(this, existing_relation) %}
    {% set settings = dbt_history._history_settings(model, 'history') %}
    {% set full_refresh = dbt_history._full_refresh(existing_relation, settings, 'history') %}

    {{ run_hooks(pre_hooks) }}

    {% set result = dbt_history._write_planned(
        dbt_history._capture_and_write, target_relation, existing_relation, compiled_code, settings,
        full_refresh, 'history',
    ) %}

    {% do dbt_history._persist_docs(target_relation) %}
    {% do apply_grants(
        target_relation, config.get('grants'), should_revoke(existing_relation, full_refresh),
    ) %}

    {{ run_hooks(post_hooks) }}

    {% call noop_statement(
        'main', dbt_history._result_message(result), 'history', result.added,
    ) %}
        -- {{ dbt_history._result_message(result) }}
    {% endcall %}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
