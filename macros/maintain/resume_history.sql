{#
    Run-operation: ends `suspend_history`. What happened in between is recorded by the model's next
    run, as one change a row whose state differs now; what is changed back leaves none. Changes from
    now on are recorded one by one again. In a mirror the step has the time of the resume: see
    `_set_hx_frames`.

        main     a   b   c    d   e   f    g   h
        history  a   b       (c to f, as    g   h
                              one step)
                      ^ suspend       ^ resume
#}
{% macro resume_history(table, dry_run=false) %}
    {% set relation = dbt_history._history_named(table, 'resume_history') %}
    {#
        The clock first: a change that comes in between belongs to the resumption, and is not before
        it.
    #}
    {% set at = dbt_history._clock().micros %}
    {% set resumed = {} %}
    {% for source, watermark in (dbt_history._commit_log(relation, '').watermarks or {}).items()
        if watermark.get('version') is not none %}
        {% do resumed.update({
            source: run_query('describe history ' ~ source ~ ' limit 1').rows[0]['version'] | int
        }) %}
    {% endfor %}
    {% do dbt_history._control_capture(
        relation, {'suspended': false, 'resumed': resumed, 'at': at}, 'false', dry_run,
        'resume_history',
    ) %}
{% endmacro %}
