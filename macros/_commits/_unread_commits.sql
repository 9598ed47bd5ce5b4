{#
    The commits of a table's sources that its next run will read, as text; none if no source has
    one. `log`: the log of the table. `kept`: operations that are not counted, without it all that
    keep the rows. `relation`: the table, see `_may_be_read`.

        source    4            5           6           7            8
                  read so far  optimize    update      add column   optimize
        unread                             6
#}
{% macro _unread_commits_of(log, kept=none, relation=none) %}
    {% set kept = kept or dbt_history._operations_without_rows() + [
        'DROP COLUMNS', 'RENAME COLUMN', 'UPGRADE PROTOCOL', 'UNSET TBLPROPERTIES',
        'ADD CONSTRAINT', 'DROP CONSTRAINT', 'COMPUTE STATS',
    ] %}
    {% set found = [] %}
    {% for source in dbt_history._tables_read((log or {}).get('watermarks')) %}
        {% set last = source.watermark.version %}
        {% set version = dbt_history._first_unread(
            source.relation, last, source.newest, kept,
        ) %}
        {% do found.append(
            'version ' ~ version ~ ' of ' ~ source.name ~ ' (last read: ' ~ last ~ ')'
        ) if version is not none and dbt_history._may_be_read(source.relation, log, relation) %}
    {% endfor %}
    {% do return(found | join(', ') or none) %}
{% endmacro %}


{#
    The Delta tables of watermarks, with their newest version: [{'name', 'relation', 'watermark',
    'newest'}]. Other sources have no versions to compare.
#}
{% macro _tables_read(watermarks) %}
    {% set found = [] %}
    {% for name, watermark in (watermarks or {}).items()
        if watermark.get('version') is not none %}
        {% set relation = dbt_history._with_format(
            load_relation(dbt_history._relation_of_source(name))
        ) %}
        {% if relation is not none and not relation.is_view and not relation.is_iceberg %}
            {% do found.append({
                'name': name, 'relation': relation, 'watermark': watermark,
                'newest': (dbt_history._history_entries(relation, 1) | first).version,
            }) %}
        {% endif %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{#
    The first version after `last` by another operation than those in `kept`: of a table that was
    made again its newest one, and where the entries have expired the first of them. None if there
    is none.
#}
{% macro _first_unread(source, last, newest, kept) %}
    {% if newest <= last %}
        {% do return(newest if newest < last else none) %}
    {% endif %}
    {% set unread = dbt_history._history_entries(source) | selectattr('version', 'gt', last)
        | sort(attribute='version') %}
    {% if unread[0].version > last + 1 %}
        {% do return(last + 1) %}
    {% endif %}
    {% do return(
        unread | rejectattr('operation', 'in', kept) | map(attribute='version') | first
            | default(none)
    ) %}
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
    {% set ids = node.depends_on.get('nodes', []) | list %}
    {% for id in ids %}
        {% set other = graph.nodes.get(id) or (graph.get('sources') or {}).get(id) or {} %}
        {% if dbt_history._is_table_of(other, source) %}
            {% do return(true) %}
        {% elif (other.get('config') or {}).get('materialized') == 'ephemeral' %}
            {% do ids.extend((other.get('depends_on') or {}).get('nodes', [])) %}
        {% endif %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}
