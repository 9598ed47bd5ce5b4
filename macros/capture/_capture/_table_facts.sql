{#
    A Delta table that capture reads: {'table_id', 'entries': its newest commits, 'properties',
    'location', 'is_marked'}; none for anything else. `watermark`: how far it was read, or none.

    Only DESCRIBE DETAIL returns the table's id, and it makes Delta read the state of the table. If
    the log has the very commit that the watermark was taken at, and nothing since that may give the
    table another id, the table is the one that was read; one that was dropped and made again, or
    swapped with another, has another commit there. `is_marked` is true then, and `location` none.
#}
{% macro _table_facts(table, watermark) %}
    {% set table = dbt_history._with_format(table) %}
    {% if table.is_view or table.is_iceberg %} {% do return(none) %} {% endif %}
    {% set commit = (watermark or {}).get('commit') %}
    {% set entries = dbt_history._history_entries(table, 30) if commit and table.is_delta else [] %}
    {% set since = entries | selectattr('version', 'gt', (watermark or {}).get('version') or 0)
        | map(attribute='operation') | join(' ') %}
    {% if commit and dbt_history._mark_of_version(entries, watermark.version) == commit
        and not modules.re.search('REPLACE|RESTORE|CLONE|CONVERT', since) %}
        {% set properties = dbt_history._table_properties(
            table, ['delta.enableChangeDataFeed', 'delta.enableRowTracking'],
        ) %}
        {% do return({
            'table_id': watermark.table_id, 'entries': entries, 'properties': properties,
            'location': none, 'is_marked': true,
        }) %}
    {% endif %}
    {% set detail = run_query('describe detail ' ~ dbt_history._quoted_relation(table)).rows[0] %}
    {% if detail['format'] | lower != 'delta' %} {% do return(none) %} {% endif %}
    {% do return({
        'table_id': detail['id'], 'entries': entries or dbt_history._history_entries(table, 30),
        'properties': dbt_history._as_mapping(detail['properties']),
        'location': detail['location'], 'is_marked': false,
    }) %}
{% endmacro %}


{#
    Whether the table is the one that was read up to `watermark`: it has its id, and at its version
    the same commit. A table whose files were set back outside Delta keeps its id:

        read up to 6      4 --- 5 --- 6
        set back to 4     4 --- 5' -- 6' -- 7'     5' and 6' were never read

    `facts`: what `_table_facts` returned; gets the commits from that version on if they are needed.
    If the commit has expired, or has no time of its own, the id decides.
#}
{% macro _is_as_read(table, facts, watermark) %}
    {% set last = (watermark or {}).get('version') %}
    {% if last is none or watermark.get('table_id') != facts.table_id
        or last > facts.entries[0].version %}
        {% do return(false) %}
    {% elif facts.is_marked or watermark.get('micros') is none %}
        {% do return(true) %}
    {% endif %}
    {% if facts.entries[-1].version > last %}
        {% do facts.update({
            'entries': dbt_history._entries_back_to(table, facts.entries, last - 1),
        }) %}
    {% endif %}
    {% set micros = dbt_history._own_micros(facts.entries, last) %}
    {% do return(micros is none or micros == watermark.micros) %}
{% endmacro %}


{#
    The time of a commit in microseconds since 1970. None if it is not among these commits, or has
    not its own time: DESCRIBE HISTORY shows a commit that is not later than the one before it a
    millisecond after that, which depends on the commits that are listed.
#}
{% macro _own_micros(entries, version) %}
    {% set times = dbt_history._micros_of_all(
        entries | selectattr('version', 'in', [version - 1, version]) | list
    ) %}
    {% set micros = times.get(version) %}
    {% do return(none if micros is not none and micros == (times.get(version - 1) or 0) + 1000
        else micros) %}
{% endmacro %}


{#
    Text that distinguishes the commit of a version from those of other tables: its time, parameters
    and metrics; none if it is not among these commits. In a session of another time zone it
    differs, which costs a DESCRIBE DETAIL.
#}
{% macro _mark_of_version(entries, version) %}
    {% for entry in entries if entry.version == version %}
        {% do return(local_md5(tojson(
            [
                entry.version, entry.timestamp | string, entry.operation, entry.parameters,
                entry.metrics,
            ],
            sort_keys=true,
        ))) %}
    {% endfor %}
    {% do return(none) %}
{% endmacro %}
