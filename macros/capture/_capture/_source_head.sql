{#
    The state of the model's own table: the number of the next batch, how far the source was read,
    whether capture is suspended. Two runs that read the same log get the same number, and only one
    of them can commit it.
#}
{% macro _taken_before(capture) %}
    {% set taken = {
        'number': 1, 'watermark': none, 'has_rows': false, 'other_sources': [],
        'watermarks': {}, 'is_suspended': false, 'resumed': {}, 'resumed_at': none, 'about': {},
        'begun': none,
    } %}
    {% set log = capture.get('log') or dbt_history._log_of_own_table() %}
    {% if log is none %}
        {% do return(taken) %}
    {% endif %}
    {% set control = log.control or {} %}
    {% do taken.update({
        'number': (log.last_batch or 0) + 1,
        'watermark': (log.watermarks or {}).get(capture.source),
        'has_rows': log.last_batch is not none or not log.is_empty,
        'watermarks': log.watermarks or {},
        'other_sources': (log.watermarks or {}).keys() | reject('equalto', capture.source) | list,
        'is_suspended': dbt_history._is_suspended(log),
        'resumed': control.get('resumed', {}),
        'resumed_at': control.get('at'),
        'about': log.about or {},
        'appended': log.get('appended'), 'begun': log.get('begun'),
    }) %}
    {% do return(taken) %}
{% endmacro %}


{# The log of the model's own table; none if there is none yet, or if the run replaces it. #}
{% macro _log_of_own_table() %}
    {% set own = load_relation(this) if execute else none %}
    {% do return(
        none if own is none or own.is_view or should_full_refresh()
            else dbt_history._commit_log(own, model.unique_id)
    ) %}
{% endmacro %}


{#
    A table that was renamed has the id under which it was read: what was taken under its former
    name counts, and the next commit names it as it is called now. Not if it has that name, too: two
    names of one folder.
#}
{% macro _take_over_renamed(capture) %}
    {% set taken, head = capture.taken, capture.head %}
    {% set former = [] %}
    {% for source, watermark in taken.watermarks.items()
        if taken.watermark is none and head.is_delta
        and watermark.get('table_id') == head.table_id %}
        {% do former.append(source) %}
    {% endfor %}
    {% if former | length != 1 %}
        {% do return(none) %}
    {% endif %}
    {% set there = load_relation(dbt_history._relation_of_source(former[0])) %}
    {% set facts = dbt_history._table_facts(there, none) if there is not none else none %}
    {% if facts is not none and facts.table_id == head.table_id %}
        {% do return(none) %}
    {% endif %}
    {% do taken.update({
        'watermark': taken.watermarks[former[0]], 'former': former[0],
        'other_sources': taken.other_sources | reject('equalto', former[0]) | list,
    }) %}
{% endmacro %}


{#
    The only source of a table that is read under another name now, or through a view: the rows that
    the table has are what it is compared with. Not where the code still names a former source, to
    which the new one may have been added.

        run        1: changes(source('shop', 'items'))    2: changes(ref('stg_items'))
        table      1 a, 2 b                               compared with the rows of stg_items
#}
{% macro _take_over_replaced(capture) %}
    {% set taken = capture.taken %}
    {% if capture.layout is not none or taken.watermark is not none %}
        {% do return(none) %}
    {% endif %}
    {% set named = [] %}
    {% for source in taken.other_sources
        if dbt_history._is_named_in_code(
            dbt_history._relation_of_source(source), capture.relation,
        ) %}
        {% do named.append(source) %}
    {% endfor %}
    {% do taken.update({'other_sources': [], 'replaced': taken.other_sources}) if not named %}
{% endmacro %}


{#
    Whether the model's code names a table beside the new source: as one that the model depends on,
    or in quotes, which tell nothing if the new source has the same name in another schema. True
    also where dbt does not tell the code.
#}
{% macro _is_named_in_code(relation, new) %}
    {% if not model.get('raw_code') or model.get('depends_on') is none
        or dbt_history._depends_on_table(model, relation, besides=new) %}
        {% do return(true) %}
    {% elif relation.identifier | lower == new.identifier | lower %}
        {% do return(false) %}
    {% endif %}
    {% set code = modules.re.sub('(?s)[{]#.*?#[}]', ' ', model.raw_code | lower) %}
    {% set name = modules.re.escape(relation.identifier | lower) %}
    {% do return(
        modules.re.search('[\'"](?:[^\'"\\s]*[.`])?' ~ name ~ '`?[\'"]', code) is not none
    ) %}
{% endmacro %}


{#
    The source as this run reads it. `version` is the newest version that the run may take: the
    newest that exists, or the last one before the first change that one of `references` has not
    taken yet; none if there is no such version.

        source             a     b     c        d        a, b and c are taken
        referenced table      x     y      z             its history has x and y, but not z, which
                                                         came after its run

    `waits` describes what is held back and why, see `_first_untaken`. The source is read before the
    tables it refers to, so that every change found in it is older than everything found in them.
#}
{% macro _source_head(table, references, commit_delay, watermark) %}
    {% set facts = dbt_history._table_facts(table, watermark) %}
    {% if facts is none %}
        {% do return({
            'is_delta': false, 'version': none, 'newest': none,
            'waits': dbt_history._first_untaken(references, commit_delay),
        }) %}
    {% endif %}
    {% set entries, properties = facts.entries, facts.properties %}
    {% set head = {
        'is_delta': true, 'table_id': facts.table_id, 'location': facts.location,
        'entries': entries, 'newest': entries[0].version, 'is_marked': facts.is_marked,
        'has_feed': (properties.get('delta.enableChangeDataFeed') or 'false') | lower == 'true',
        'tracks_rows': (properties.get('delta.enableRowTracking') or 'false') | lower == 'true',
    } %}
    {% set waits = dbt_history._first_untaken(references, commit_delay) %}
    {% if waits is none %}
        {% do return(dict(head, version=head.newest, waits=none)) %}
    {% elif waits.before is none %}
        {% do return(dict(head, version=none, waits=waits)) %}
    {% endif %}
    {% set times = dbt_history._micros_of_all(entries) %}
    {% if times[entries[-1].version] >= waits.before and entries[-1].version > 0 %}
        {% do head.update({'entries': dbt_history._history_entries(table)}) %}
        {% set times = dbt_history._micros_of_all(head.entries) %}
    {% endif %}
    {% set allowed = [] %}
    {% for entry in head.entries if times[entry.version] < waits.before %}
        {% do allowed.append(entry.version) %}
    {% endfor %}
    {% do return(dict(head, version=allowed[0] if allowed else none, waits=waits)) %}
{% endmacro %}


{# The commits after version `last`, newest first: their users, transactions, and schema changes. #}
{% macro _entries_since(capture, last) %}
    {% set entries = capture.head.entries %}
    {% if entries[-1].version > last + 1 %}
        {% set entries = dbt_history._entries_back_to(capture.relation, entries, last - 1) %}
    {% endif %}
    {% if entries[-1].version > last + 1 %}
        {% do dbt_history._refuse_expired(capture, last) %}
    {% endif %}
    {% do return(entries) %}
{% endmacro %}
