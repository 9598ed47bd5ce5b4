{#
    Decides what a run reads from a source, and returns it as constants: nothing, the whole table,
    the difference from the newest known state, the change data feed, or a difference and then the
    feed.

        version     w            d                  v
        source   ---+------------+------------------+---->
        taken    ---]
        this run    ( difference ](      feed       ]
                                 '- up to d the feed cannot be read: it was off, has another schema,
                                    or capture was suspended

    `layout` describes how the model's own table stores the newest state (`_known_state`; with
    `is_source` it stores none: the source at the version last taken is the state; with
    `is_versions` its open versions are the state, whatever source they came from). `references` are
    the histories that the rows will link to (a list for a mirror, else none): no change is taken
    that is later than a change that one of them has not taken yet, or, in seconds, younger than
    `commit_delay`. `own_log` is that of the model's own table, if the caller has read it; the name
    `log` would hide dbt's function. `fixed` are columns that have, like those of the key, their
    current name in all rows.
#}
{% macro _plan_capture(
    relation, key, method, caller_name, layout=none, references=none, commit_delay=0, own_log=none,
    fixed=[]
) %}
    {% set capture = {
        'relation': relation, 'key': dbt_history._key_columns(key), 'layout': layout,
        'fixed': dbt_history._key_columns(key) + fixed,
        'caller_name': caller_name,
        'source': dbt_history._quoted_relation(relation) | lower, 'segments': [], 'diff': none,
        'entries': [], 'watermark': none, 'is_mirror': references is not none, 'log': own_log,
    } %}
    {% set method = var('dbt_history_capture', method) %}
    {% do dbt_history._refuse_capture(capture, method) %}
    {% set table = load_relation(relation) if execute and not dbt_history._is_unit_test()
        else none %}
    {% if table is none %}
        {% do dbt_history._refuse_missing_source(capture) %}
        {% do return(dict(capture, is_parsed_only=true, columns=[])) %}
    {% endif %}
    {% set taken = dbt_history._taken_before(capture) %}
    {% set head = dbt_history._source_head(
        table, references or [], commit_delay, taken.watermark,
    ) %}
    {% do capture.update({
        'taken': taken, 'head': head, 'table': dbt_history._quoted_relation(relation),
    }) %}
    {% do dbt_history._take_over_renamed(capture) %}
    {% do dbt_history._take_over_replaced(capture) %}
    {% do capture.update({'renames': dbt_history._pending_renames(capture)}) %}
    {% do capture.update({'fixed': capture.fixed + dbt_history._renamed_in_both(capture)}) %}
    {% if taken.is_suspended %}
        {% do dbt_history._log_suspended(this) %}
    {% elif not head.is_delta and head.waits is none %}
        {% do dbt_history._plan_unversioned(capture, method) %}
    {% elif head.version is not none %}
        {% do dbt_history._plan_versioned(capture, method) %}
    {% endif %}
    {% do dbt_history._log_waiting(capture) %}
    {% do capture.update({'columns': dbt_history._captured_columns(capture)}) %}
    {# The materialization history does not store who changed a row. #}
    {% if capture.diff is not none and not (layout or {}).get('is_versions') %}
        {% do dbt_history._attribute_difference(capture) %}
    {% endif %}
    {% do dbt_history._refuse_renamed_key(capture) %}
    {% do dbt_history._refuse_captured_columns(capture) %}
    {% do dbt_history._refuse_retyped_columns(capture) %}
    {% do return(capture) %}
{% endmacro %}


{# A view, or a table of a format without versions: only its current rows can be read. #}
{% macro _plan_unversioned(capture, method) %}
    {% if method == 'feed' %}
        {% do dbt_history._refuse_feed(capture, 'the relation is not a Delta table') %}
    {% endif %}
    {% if (capture.layout or {}).get('is_source') %}
        {% do dbt_history._layout_of_changes(capture, []) %}
    {% endif %}
    {% set taken = capture.taken %}
    {% set clock = dbt_history._clock() %}
    {% do capture.update({
        'diff': {
            'version': none, 'number': taken.number, 'micros': clock.micros,
            'state': dbt_history._has_state(capture),
        },
        'watermark': {
            'version': none, 'table_id': none,
            'populated': (taken.watermark or {}).get('populated', clock.micros),
        },
    }) %}
    {% do dbt_history._let_difference_be_last(capture) %}
    {% do dbt_history._set_generation(
        capture, (taken.watermark or {}).get('version') is not none,
    ) %}
{% endmacro %}


{#
    A Delta table: sets `diff`, `entries` (the commits whose feed is read) and `watermark` (how far
    the table is read after the run). Without a watermark the run takes nothing.

        the feed is complete          ---](      feed      ]
        it has a gap up to d          ---]( diff  d]( feed ]
        there is none                 ---](      diff      ]
        made again, or set back          (       diff      ]    all from the known state
#}
{% macro _plan_versioned(capture, method) %}
    {% set taken, head = capture.taken, capture.head %}
    {% set last = (taken.watermark or {}).get('version') %}
    {% set is_same = dbt_history._is_as_read(capture.relation, head, taken.watermark) %}
    {% set resume_at, resumed = taken.resumed.get(taken.get('former', capture.source)), none %}
    {% do capture.update({'is_same': is_same}) %}
    {% if is_same and head.version <= last %}
        {% do return(none) %}
    {% endif %}
    {% if method == 'feed' and taken.has_rows and not is_same %}
        {% do dbt_history._refuse_feed(
            capture,
            'how far the table was read is not known' if last is none
                else 'the table was dropped and made again, or set back',
        ) %}
    {% endif %}
    {% set diff_at = none %}
    {% if not is_same or method == 'diff' or (method == 'auto' and not head.has_feed) %}
        {% set diff_at = head.version %}
    {% else %}
        {% set resume_at = [resume_at, head.newest] | min
            if resume_at is not none and resume_at > last else none %}
        {% do capture.update({'entries': dbt_history._entries_since(capture, last)}) %}
        {% set resumed = dbt_history._resumption_micros(capture, resume_at)
            if capture.is_mirror and resume_at is not none else none %}
        {% if resumed is not none and dbt_history._must_wait(capture, resumed) %}
            {% do return(none) %}
        {% endif %}
        {% set since = resume_at if resume_at is not none else last %}
        {% set diff_at = dbt_history._plan_feed(capture, since, method) %}
        {% set diff_at = diff_at if diff_at is not none else resume_at %}
        {% if dbt_history._is_of_versions(capture) %}
            {% set diff_at = dbt_history._add_compared_parts(capture, since, diff_at) %}
        {% endif %}
    {% endif %}
    {% set micros = dbt_history._version_micros(capture, diff_at) if diff_at is not none
        else none %}
    {% if diff_at is not none %}
        {% set micros = resumed if resumed is not none and diff_at == resume_at else micros %}
        {% do capture.update({
            'diff': {
                'version': diff_at, 'number': diff_at, 'micros': micros,
                'state': dbt_history._has_state(capture),
            }
        }) %}
        {% do dbt_history._mark_gap(capture, is_same) %}
        {% do dbt_history._let_difference_be_last(capture) %}
        {% if capture.is_mirror and not is_same
            and dbt_history._must_wait(capture, capture.diff.micros) %}
            {% do capture.update({'diff': none}) %}
            {% do return(none) %}
        {% endif %}
    {% endif %}
    {% do capture.update({'watermark': {
        'version': head.version, 'table_id': head.table_id,
        'commit': dbt_history._mark_of_version(head.entries, head.version),
        'micros': dbt_history._own_micros(head.entries, head.version),
        'populated': (taken.watermark or {}).get('populated') if taken.watermark
            else (micros if not taken.has_rows else none),
    }}) %}
    {% do dbt_history._set_generation(capture, not is_same) %}
{% endmacro %}


{#
    The generation of a source, for the ids of transactions: a table that was made again or set back
    gives its versions to other commits.

        items made    0 --- 1 --- 2 | again  0 --- 1
        ids           items:1 items:2        items#2:1       the first has no number
#}
{% macro _set_generation(capture, is_another) %}
    {% set before = capture.taken.watermark %}
    {% set generation = 1 if before is none
        else before.get('generation', 1) + (1 if is_another else 0) %}
    {% if generation > 1 %}
        {% do capture.update({'generation': generation}) %}
        {% do capture.watermark.update({'generation': generation}) %}
    {% endif %}
{% endmacro %}


{#
    For a log whose known state is the source itself: sets `gap` to the difference, in which changes
    are not known one by one. It is the difference from the version last taken; none is taken if
    that version is not known or cannot be read any more, and all rows are if the table is a
    different one. A table that was added has no gap.
#}
{% macro _mark_gap(capture, is_same) %}
    {% set taken = capture.taken %}
    {% set is_added = taken.watermark is none and (not taken.has_rows or taken.other_sources) %}
    {% if (capture.layout or {}).get('is_source') and not is_added %}
        {% do capture.update({'gap': capture.diff}) %}
        {% if taken.watermark is none %}
            {% do capture.update({'diff': none}) %}
        {% elif not is_same %}
            {% do capture.diff.update({'state': false}) %}
        {% elif not dbt_history._can_be_read(dbt_history._version_taken(capture)) %}
            {% do capture.update({'diff': none}) %}
        {% endif %}
    {% endif %}
{% endmacro %}
