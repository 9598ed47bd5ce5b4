{#
    A mirror never takes changes later than those of a mirror it refers to: rows are linked once, so
    a link to a row that arrives later would be missing.

        main a            c1     c2      c3
        its mirror        c1 taken, then suspended, not run, or refused
        main b        d1      d2     d3      d4      d1 and d2 are taken; d3 and d4 wait for c2

    The earliest of all references: none if nothing is held back, else {'before': the time of the
    first change that is not taken, in microseconds since 1970 (none: no change is taken),
    'history', 'why', 'then'}. Within a table the versions are in the order of their times; but a
    commit may become visible some seconds after its time, and a change of another table that was
    committed in these seconds has been seen before it:

        main a               c1 ..... c1 visible         `commit_delay`: b takes d1 when c1 must be
        main b                   d1                      visible

#}
{% macro _first_untaken(references, commit_delay) %}
    {% set others = references | rejectattr('is_own') | list %}
    {% set state = namespace(first=dbt_history._unsettled(others, commit_delay)) %}
    {% for reference in others %}
        {% set waits = dbt_history._untaken_of(reference) %}
        {% set state.first = dbt_history._earlier_wait(
            state.first,
            dict(waits, history=dbt_history._quoted_relation(reference.history))
                if waits is not none else none,
        ) %}
    {% endfor %}
    {% do return(state.first) %}
{% endmacro %}


{# Of two waits, each perhaps none, the one that holds back more. #}
{% macro _earlier_wait(one, other) %}
    {% if one is none or other is none %}
        {% do return(other if one is none else one) %}
    {% endif %}
    {% set is_earlier = other.before is none
        or (one.before is not none and other.before < one.before) %}
    {% do return(other if is_earlier else one) %}
{% endmacro %}


{# With references, nothing that is younger than `commit_delay` is taken. #}
{% macro _unsettled(references, commit_delay) %}
    {% do return({
        'before': dbt_history._clock().micros - commit_delay * 1000000,
        'history': dbt_history._quoted_relation(references[0].history),
        'why': 'earlier commits may become visible within ' ~ commit_delay ~ ' s (commit_delay)',
        'then': 'run it again later',
    } if commit_delay and references else none) %}
{% endmacro %}


{#
    The same for one reference. A view, or a table that is not filled by capture, has no record of
    what it has taken.
#}
{% macro _untaken_of(reference) %}
    {% set log = reference.log %}
    {% if not reference.is_there %}
        {% do return({'before': none, 'why': 'it does not exist yet'}) %}
    {% elif log is none %}
        {% do return(none) %}
    {% elif not log.watermarks %}
        {% set node = dbt_history._node_named(
            reference.history.schema ~ '.' ~ reference.history.identifier
        ) %}
        {% set is_log = node is none or node.config.get('materialized') == 'history_append' %}
        {% set has_none = log.last_batch is none and log.is_empty %}
        {% if not is_log or not (has_none or log.watermarks is none) %}
            {% do return(none) %}
        {% endif %}
        {% do return({
            'before': none,
            'why': 'it has taken nothing yet' if has_none else 'how far it was read has expired',
        }) %}
    {% endif %}
    {% set state = namespace(first=none) %}
    {% for source, watermark in log.watermarks.items() if watermark.get('version') is not none %}
        {% set state.first = dbt_history._earlier_wait(
            state.first, dbt_history._untaken_after(reference, source, watermark),
        ) %}
    {% endfor %}
    {% do return(state.first) %}
{% endmacro %}


{#
    The same for one source of a reference. For a table that was created again only the difference
    is known: everything after the last row it gave waits.
#}
{% macro _untaken_after(reference, source, watermark) %}
    {% set table = dbt_history._source_of_reference(reference, source) %}
    {% set facts = dbt_history._table_facts(table, watermark) %}
    {% if facts is none or not dbt_history._is_as_read(table, facts, watermark) %}
        {% do return({
            'before': dbt_history._last_micros(reference.history, 'mod_time'),
            'why': source ~ ' was made again, or set back, since it was read',
        }) %}
    {% endif %}
    {% set entries = facts.entries %}
    {% if entries[-1].version > watermark.version + 1 %}
        {% set entries = dbt_history._entries_back_to(table, entries, watermark.version - 1) %}
    {% endif %}
    {% set untaken = entries | selectattr('version', 'gt', watermark.version) | list %}
    {% if not untaken %}
        {% do return(none) %}
    {% endif %}
    {% set why = 'it has not taken the changes of ' ~ source ~ ' since version '
        ~ watermark.version %}
    {% set is_suspended = dbt_history._is_suspended(reference.log) %}
    {% do return({
        'before': dbt_history._micros_of(untaken[-1].timestamp),
        'why': why ~ (' (it is suspended)' if is_suspended else ''),
    }) %}
{% endmacro %}


{% macro _source_of_reference(reference, source) %}
    {% set table = load_relation(dbt_history._relation_of_source(source)) %}
    {% if table is none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'hx_rows', 'the main table of a referenced mirror does not exist',
            got=source ~ ', the main table of ' ~ reference.history,
            expected='the table that ' ~ reference.history ~ ' mirrors', node=model.unique_id,
            way_out='make ' ~ source ~ ' again and run ' ~ reference.history.identifier
                ~ ', or take the reference out of this model',
        )) %}
    {% endif %}
    {% do return(table) %}
{% endmacro %}


{# Logs that a run leaves changes to a later run, and why. #}
{% macro _log_waiting(capture) %}
    {% set head = capture.head %}
    {% set last = (capture.taken.watermark or {}).get('version') %}
    {% set reached = (capture.watermark or {}).get('version', last) %}
    {% set is_behind = (reached is none or reached < head.newest) if head.is_delta
        else (capture.watermark is none) %}
    {# A table that was set back may have fewer versions than were read. #}
    {% set is_behind = is_behind
        or (capture.watermark is none and not capture.get('is_same', true)) %}
    {% if head.waits is not none and is_behind and not capture.taken.is_suspended %}
        {% set why = head.waits.history ~ ': ' ~ head.waits.why %}
        {% do log(
            'dbt_history: ' ~ this.identifier ~ ' waits for ' ~ why ~ '; '
                ~ (head.waits.then or 'run it, then this model'),
            info=true,
        ) %}
    {% endif %}
{% endmacro %}
