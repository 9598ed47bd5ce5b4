{#
    The commits of a table's sources that its next run will read, as text; none if no source has
    one. `log`: the log of the table. `kept`: operations that are not counted, without it all that
    keep the rows:

        source    4            5           6           7            8
                  read so far  optimize    update      add column   optimize
        unread                             6
#}
{% macro _unread_commits_of(log, kept=none) %}
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
        ) if version is not none %}
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
