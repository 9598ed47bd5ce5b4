{#
    The commits of a table's sources that its next run will read, as text; none if no source has
    one. `log`: the log of the table. `kept`: operations that are not counted, without it all that
    keep the rows. `relation`: the table, see `_may_be_read`.

        source    4            5           6           7            8
                  read so far  optimize    update      add column   optimize
        unread                             6
#}
{% macro _unread_commits_of(log, kept=none, relation=none) %}
    {% do return(
        dbt_history._unread_sources(log, relation, kept) | map(attribute='text') | join(', ')
            or none
    ) %}
{% endmacro %}


{#
    The same as a list: {'text', 'micros': when the first of these commits was made (none: that is
    not known any more), 'newest': when the newest commit of the source was made}.
#}
{% macro _unread_sources(log, relation, kept=none) %}
    {% set kept = kept or dbt_history._operations_without_rows() + [
        'DROP COLUMNS', 'RENAME COLUMN', 'UPGRADE PROTOCOL', 'UNSET TBLPROPERTIES',
        'ADD CONSTRAINT', 'DROP CONSTRAINT', 'COMPUTE STATS',
    ] %}
    {% set found = [] %}
    {% for source in dbt_history._tables_read((log or {}).get('watermarks')) %}
        {% set entry = dbt_history._first_unread(source, kept) %}
        {% if entry is not none and dbt_history._may_be_read(source.relation, log, relation) %}
            {% set is_dated = entry.timestamp is not none %}
            {% set times = dbt_history._micros_of_all(
                [source.entries[0]] + ([entry] if is_dated else [])
            ) %}
            {% do found.append({
                'text': 'version ' ~ entry.version ~ ' of ' ~ source.name ~ ' (last read: '
                    ~ source.watermark.version ~ ')',
                'micros': times[entry.version] if is_dated else none,
                'newest': times[source.newest],
            }) %}
        {% endif %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The Delta tables of watermarks, with their newest version: [{'name', 'relation', 'watermark',
    'newest', 'entries', 'is_as_read'}]. Other sources have no versions to compare.
#}
{% macro _tables_read(watermarks) %}
    {% set found = [] %}
    {% for name, watermark in (watermarks or {}).items()
        if watermark.get('version') is not none %}
        {% set relation = load_relation(dbt_history._relation_of_source(name)) %}
        {% set facts = none if relation is none
            else dbt_history._table_facts(relation, watermark) %}
        {% if facts is not none %}
            {% set is_as_read = dbt_history._is_as_read(relation, facts, watermark) %}
            {% do found.append({
                'name': name, 'relation': relation, 'watermark': watermark,
                'newest': facts.entries[0].version, 'entries': facts.entries,
                'is_as_read': is_as_read,
            }) %}
        {% endif %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The first commit after the watermark by another operation than those in `kept`: of a table that
    was made again or set back its newest one, whatever its version, and where the entries have
    expired the first of them, without a time. None if there is none.
#}
{% macro _first_unread(source, kept) %}
    {% set last = source.watermark.version %}
    {% if not source.is_as_read %}
        {% do return(source.entries[0]) %}
    {% elif source.newest == last %}
        {% do return(none) %}
    {% endif %}
    {% set entries = dbt_history._entries_back_to(source.relation, source.entries, last) %}
    {% set unread = entries | selectattr('version', 'gt', last) | sort(attribute='version') %}
    {% if unread[0].version > last + 1 %}
        {% do return({'version': last + 1, 'timestamp': none}) %}
    {% endif %}
    {% do return(unread | rejectattr('operation', 'in', kept) | first | default(none)) %}
{% endmacro %}


{#
    Whether the next run of the model of `relation` may read the source. It does not if the last run
    read no changes, and the model no longer names the source, itself or through ephemeral models:

        run            1: changes(ref('a'))    2: select * from {{ ref('b') }}
        watermarks     a: 13                   a: 13, copied                      a is not read
#}
{% macro _may_be_read(source, log, relation) %}
    {% set node = dbt_history._node_of_relation(relation)
        if relation is not none and log.get('copies_watermarks') else none %}
    {% if not (node or {}).get('raw_code') or node.get('depends_on') is none
        or source.identifier | lower in node.raw_code | lower %}
        {% do return(true) %}
    {% endif %}
    {% do return(dbt_history._depends_on_table(node, source)) %}
{% endmacro %}
