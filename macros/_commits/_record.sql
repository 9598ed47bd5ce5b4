{# The record of a batch in its commit. #}
{% macro _commit_record(plan, log) %}
    {% set record = {
        'dbt_history': '1',
        'model': model.unique_id,
        'batch': plan.batch,
        'table_id': log.table_id,
        'epoch': log.epoch,
        'seen': (log.get('seen') or {}).get('version'),
        'staged_rows': plan.stages,
        'invocation_id': invocation_id,
    } %}
    {% do record.update(dbt_history._run_attribution()) %}
    {# The former name of a renamed model, with which its transactions go on. #}
    {% do record.update({'app': log.app}) if log.get('app') not in [none, model.unique_id] %}
    {# The rows before a numbered append, which its INSERT checks: see `_rows_by_log`. #}
    {% do record.update({'stored': plan.stored}) if plan.get('stored') is not none %}
    {# The last id before this append of a mirror's rows: see `_last_hx_id`. #}
    {% do record.update({'last_id': plan.last_id}) if plan.get('last_id') is not none %}
    {# Suspended or resumed since the run planned: see `_unseen_control`. #}
    {% do record.update({'unseen_control': log.unseen_control}) if log.get('unseen_control') %}
    {# Of several batches in one commit `batch` is the last. #}
    {% if plan.get('parts') %}
        {% do record.update({'first_batch': plan.first_batch, 'batches': plan.parts | length}) %}
    {% endif %}
    {#
        Watermarks are committed with the rows that were read up to them; a commit without capture
        copies the previous ones, and says so: see `_may_be_read`.
    #}
    {% if log.get('watermarks') and not plan.get('watermarks') %}
        {% do record.update({'copies_watermarks': true}) %}
    {% endif %}
    {# Where the restored state of a rewind begins: see `_begun_by`. #}
    {% do record.update({'begun': log.begins}) if log.get('begins') is not none %}
    {% for name in ['watermarks', 'about', 'key'] if plan.get(name) or log.get(name) %}
        {% do record.update({name: plan.get(name) or log.get(name)}) %}
    {% endfor %}
    {% do return(record) %}
{% endmacro %}


{# Author, application and message of the run, from the environment; for the commits' records. #}
{% macro _run_attribution() %}
    {% set said = {} %}
    {% for name in ['author', 'application', 'message'] %}
        {% set value = env_var('DBT_HISTORY_' ~ name | upper, '') %}
        {% if value %}{% do said.update({name: value}) %}{% endif %}
    {% endfor %}
    {% do return(said) %}
{% endmacro %}


{# The JSON object in a commit's metadata; empty if it has none. #}
{% macro _said_by(entry) %}
    {% set said = entry.record or entry.get('said') %}
    {% if said is string %}
        {% set said = fromjson(said, none) if said.startswith('{') else none %}
    {% endif %}
    {% do return(said if said is mapping else {}) %}
{% endmacro %}


{# The run-operation that a commit records; none if it is a commit of somebody else. #}
{% macro _recorded_operation(entry) %}
    {% do return(dbt_history._said_by(entry).get('history_operation')) %}
{% endmacro %}


{#
    What the changes of later runs have to exceed because of an operation (`rewind`, a migration)
    whose versions begin at `number` of the axis, in microseconds: then its versions are not empty.
    None on an axis of numbers, which has no clocks.

        number      10:00:00.000                    a gap of a millisecond
        begun       10:00:00.000999
        table       [ restored )[ change at 10:00:00.001 ---
#}
{% macro _begun_until(number, convention) %}
    {% if convention.type == 'bigint' %}{% do return(none) %}{% endif %}
    {% do return(
        86400000000 * number if convention.type == 'date'
            else number + [dbt_history._gap_units(convention), 1] | max - 1
    ) %}
{% endmacro %}


{# The same, as the commit of an operation records it; none for any other commit. #}
{% macro _begun_by(entry) %}
    {% set said = dbt_history._said_by(entry) %}
    {% do return(said.get('begun') if entry.record or 'history_migration' in said else none) %}
{% endmacro %}


{#
    Whether the versions of an operation hide the rows of a batch that was planned before it: those
    of captured changes, whose times did not have to exceed it. `batch`: its plan or record.

        source    a1    a2         a3 (captured)
        table     [ a1 )[ a2 --------------------- rewound: )[ a1 ----
        merged    [ a1 )[ a2 ------)[ a3 -------------------)[ a1 ----    a3 is never current
#}
{% macro _hides_changes(entry, batch) %}
    {% do return(
        batch.get('watermarks') and not batch.get('copies_watermarks')
            and dbt_history._begun_by(entry) is not none
    ) %}
{% endmacro %}


{# An operation that `_hides_changes`, as text. #}
{% macro _operation_of(entry) %}
    {% set migration = dbt_history._said_by(entry).get('history_migration') or {} %}
    {% do return(migration.get('operation', 'rewind') ~ ', version ' ~ entry.version) %}
{% endmacro %}
