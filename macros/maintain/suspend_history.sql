{#
    Run-operation: from now on runs of the model take nothing from its sources, until
    `resume_history`. Main tables may be changed meanwhile. Batches, writes of features and rows of
    a log are held back: they stay pending. `table`: the name of a model, or schema.table.
#}
{% macro suspend_history(table, dry_run=false) %}
    {% set relation = dbt_history._history_named(table, 'suspend_history') %}
    {% if dbt_history._is_suspended(dbt_history._commit_log(relation, '')) %}
        {% do dbt_history._repeat_control(relation, true, dry_run, 'suspend_history') %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._control_capture(
        relation, {'suspended': true}, 'true', dry_run, 'suspend_history',
    ) %}
{% endmacro %}
