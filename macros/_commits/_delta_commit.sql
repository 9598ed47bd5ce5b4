{#
    txnAppId and txnVersion make the statement idempotent: Delta ignores a commit whose version is
    not above the last one of that id. After a conflict with a reset the statement is not retried
    (`reset`), because its plan is for the table before the reset.
#}
{% macro _delta_commit_once(target, statement, plan, log, before) %}
    {% set state = namespace(failed='conflict', log=log) %}
    {% set settings = dict(
        dbt_history._settings_of_rules(plan),
        **dbt_history._settings_of_small_merge(target, plan, log, before),
    ) %}
    {% for attempt in range(6) if state.failed == 'conflict' %}
        {% if attempt %}
            {% set state.log = dbt_history._delta_commit_log(target, model.unique_id) %}
        {% endif %}
        {% set taken = state.log.last_batch %}
        {% if plan.get('has_no_number') and dbt_history._is_overtaken(target, log) %}
            {% set state.failed = 'overtaken' %}
        {% elif attempt and plan.batch is not none
            and dbt_history._reset_since(
                log, dbt_history._entries_since_log(target, log), plan,
            ) %}
            {% set state.failed = 'reset' %}
        {% elif attempt and plan.batch is not none and taken is not none and taken >= plan.batch %}
            {% set state.failed = none %}
        {% else %}
            {% set state.failed = dbt_history._guarded_statement(
                statement,
                dict(
                    dbt_history._commit_settings(plan, dict(
                        state.log, seen=log.seen, unseen_control=log.get('unseen_control'),
                        begins=log.get('begins'),
                    )),
                    **settings,
                ),
                before,
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(state.failed) %}
{% endmacro %}


{#
    The settings of a commit: its record, and the pair of id and version that makes it idempotent:
    the plan's own pair, or the table's id with the number of the batch.
#}
{% macro _commit_settings(plan, log) %}
    {% set once = plan.get('once') or {'app_id': log.app_id, 'version': plan.batch} %}
    {% set settings = {
        dbt_history._user_metadata(): dbt_history._record_text(
            dbt_history._commit_record(plan, log)
        )
    } %}
    {% if once.version is not none %}
        {% do settings.update({
            'spark.databricks.delta.write.txnAppId': once.app_id,
            'spark.databricks.delta.write.txnVersion': once.version | string,
        }) %}
    {% endif %}
    {% do return(settings) %}
{% endmacro %}


{#
    Settings with which Spark interprets a statement instead of generating Java code and compiling
    it. The code of a MERGE takes seconds to compile, whatever the number of rows; on few rows it
    saves less than that. Only for a plan that says how many rows it has.
#}
{% macro _settings_of_small_merge(target, plan, log, before) %}
    {% if plan.get('rows') is none or plan.rows > 10000 %}{% do return({}) %}{% endif %}
    {% set bytes = 0 if log.is_empty
        else dbt_history._delta_detail(target, before)['sizeInBytes'] | int %}
    {% if bytes > 4194304 %}{% do return({}) %}{% endif %}
    {% do dbt_history._advise_settings(before) %}
    {% do return(dbt_history._settings_of_interpretation()) %}
{% endmacro %}
