{#
    Run-operation: ends `suspend_history`. The model's next run records what happened in between as
    one change per row whose state differs; a change that was undone leaves no trace. Later changes
    are recorded one by one again. In a mirror these rows have the time of the resumption: see
    `_set_frames`. Batches that were held back are applied one after the other, as if the table
    had not been suspended.

        main     a   b   c    d   e   f    g   h
        history  a   b       (c to f, as    g   h
                              one step)
                      ^ suspend       ^ resume
                                               ^ resume: nothing to do, g and h stay two steps
#}
{% macro resume_history(table, dry_run=false) %}
    {% set relation = dbt_history._history_named(table, 'resume_history') %}
    {% set log = dbt_history._commit_log(relation, '') %}
    {% if not dbt_history._is_suspended(log) %}
        {% do dbt_history._repeat_control(relation, false, dry_run, 'resume_history') %}
        {% do return(none) %}
    {% endif %}
    {#
        Read the clock first: a change committed in between belongs to the resumption and is not
        earlier than it.
    #}
    {% set at = dbt_history._clock().micros %}
    {% set resumed = {} %}
    {#
        A source that is gone, has another name now, or is no Delta table any more, has no
        difference: it is read as it is.
    #}
    {% for source, watermark in (log.watermarks or {}).items()
        if watermark.get('version') is not none %}
        {% set table = load_relation(dbt_history._relation_of_source(source)) %}
        {% set facts = dbt_history._table_facts(table, none) if table is not none else none %}
        {% do resumed.update({source: facts.entries[0].version}) if facts is not none %}
    {% endfor %}
    {% do dbt_history._control_capture(
        relation, {'suspended': false, 'resumed': resumed, 'at': at}, 'false', dry_run,
        'resume_history',
    ) %}
{% endmacro %}
