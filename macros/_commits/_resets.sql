{#
    How the table was reset since `log` was read, as text; none if it is the same table and was not
    reset. A batch of another run that was planned before a reset counts as one: it will be undone.
    So does an operation that hides the rows of `plan`.
#}
{% macro _reset_since(log, entries, plan={}) %}
    {% set state = namespace(is_same=false, reset=none) %}
    {% for entry in entries if entry.version >= log.seen.version %}
        {% if entry.version == log.seen.version %}
            {% set state.is_same = entry.timestamp == log.seen.timestamp %}
        {% elif entry.operation == 'RESTORE' or dbt_history._is_reset(entry) %}
            {% set state.reset = entry.operation ~ ', version ' ~ entry.version %}
        {% elif dbt_history._hides_changes(entry, plan) %}
            {% set state.reset = dbt_history._operation_of(entry) %}
        {% elif dbt_history._is_misplaced(entry, entries) %}
            {% set state.reset = 'before batch ' ~ entry.record.batch ~ ' of another run, version '
                ~ entry.version %}
        {% endif %}
    {% endfor %}
    {% do return(state.reset if state.is_same or state.reset else 'dropped and created again') %}
{% endmacro %}


{#
    Whether another run of the model has committed a batch since `log` was read. Numbers order
    numbered batches; one without a number that was staged before such a commit would remove newer
    versions:

        view     a, v1                      a, v1, v2
        run 1    staged: a begins at v1 .............................. merged: v2 is removed
        run 2                               staged, merged: v1, v2

    For an operation (`rewind`) the batch of any run counts: its rows are those of the table before.
#}
{% macro _is_overtaken(target, log) %}
    {% set state = namespace(is_newer=true, is_overtaken=false) %}
    {% set entries = dbt_history._history_entries(target) if target.is_iceberg
        else dbt_history._entries_since_log(target, log) %}
    {% for entry in entries %}
        {% if entry.version == (log.snapshot if target.is_iceberg else log.seen.version) %}
            {% set state.is_newer = false %}
        {% endif %}
        {% set record = entry.record or {} %}
        {% if state.is_newer and 'batch' in record
            and ('raw_code' not in model or record.get('model') == model.unique_id)
            and record.get('invocation_id') != invocation_id %}
            {% set state.is_overtaken = true %}
        {% endif %}
    {% endfor %}
    {% do return(state.is_overtaken) %}
{% endmacro %}


{#
    The commits from `log.seen` on, newest first, and those that the runs of their batches had not
    seen.
#}
{% macro _entries_since_log(target, log) %}
    {% set entries = dbt_history._history_entries(target, 10) %}
    {% set needed = dbt_history._first_needed(
        entries | selectattr('version', 'gt', log.seen.version), log.seen.version,
    ) %}
    {% if entries[-1].version > needed %}
        {% set entries = dbt_history._history_entries(target) %}
    {% endif %}
    {% do return(entries) %}
{% endmacro %}


{# Whether a log has no batch, or only earlier ones than the last one that was read before. #}
{% macro _is_set_back(last, log) %}
    {% do return(last is not none and (log.last_batch is none or log.last_batch < last)) %}
{% endmacro %}
