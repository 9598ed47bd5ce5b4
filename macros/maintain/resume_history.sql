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
#}
{% macro resume_history(table, dry_run=false) %}
    {% set relation = dbt_history._history_named(table, 'resume_history') %}
    {#
        Read the clock first: a change committed in between belongs to the resumption and is not
        earlier than it.
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
