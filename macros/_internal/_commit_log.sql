{#
    What the table itself remembers: its id, its layout, and the last batch it took.

        version   0       1        2        3         4                5        6
                  create  batch 1  batch 2  optimize  restore to 1     batch 2  batch 3
                                                      '- reset: the app id changes, so that batch 2
                                                         and 3, undone here, are applied again
    The newest record above the newest reset is the last batch; a restore goes on reading at the version it restored.
    Returns {'table_id', 'is_empty', 'is_known', 'epoch', 'last_batch', 'app_id', 'watermarks', 'about', 'control'}; `is_empty` is only
    known where no batch is, and `is_known` says that a batch, numbered or not, was merged into the table before. `watermarks`
    says how far the batch's sources were read (none: the log's entries have expired), `control` whether capture was
    suspended or resumed since.
#}
{% macro _delta_commit_log(relation, node_id) %}
    {% set found = dbt_history._find_last_batch(dbt_history._delta_history_entries(relation, 30)) %}
    {% if not found.is_final %}
        {% set found = dbt_history._find_last_batch(dbt_history._delta_history_entries(relation)) %}
    {% endif %}
    {# A record names the table's id; without one it is asked for, which makes Delta add up all files. #}
    {% set log = {'table_id': found.table_id, 'is_empty': false} %}
    {% if not found.table_id %}
        {% set detail = run_query('describe detail ' ~ dbt_history._full_name(relation)).rows[0] %}
        {% set log = {'table_id': detail['id'], 'location': detail['location'], 'is_empty': (detail['numFiles'] or 0) == 0} %}
    {% endif %}
    {% if not found.is_final and not found.is_restored %}
        {% set found = dbt_history._last_batch_in_checkpoint(node_id, log) %}
    {% endif %}
    {% do log.update({'epoch': found.epoch or 0, 'last_batch': found.last_batch, 'is_known': found.get('is_known', false)}) %}
    {% do log.update({'watermarks': found.get('watermarks'), 'about': found.get('about'), 'control': found.get('control')}) %}
    {% do log.update({'app_id': 'dbt_history:' ~ node_id ~ ':' ~ log.table_id ~ ':' ~ log.epoch}) %}
    {% do return(log) %}
{% endmacro %}


{% macro _delta_history_entries(relation, limit=none) %}
    {% set entries = [] %}
    {% for row in run_query('describe history ' ~ dbt_history._full_name(relation) ~ (' limit ' ~ limit if limit else '')).rows %}
        {% set record = row['userMetadata'] %}
        {% set record = fromjson(record) if record is string and record.startswith('{') and 'dbt_history' in record else none %}
        {% do entries.append({
            'version': row['version'] | int,
            'timestamp': row['timestamp'],
            'operation': row['operation'],
            'parameters': dbt_history._as_mapping(row['operationParameters']),
            'metrics': dbt_history._as_mapping(row['operationMetrics']),
            'record': record if record is mapping else none,
            'said': row['userMetadata'],
            'user': row['userName'],
        }) %}
    {% endfor %}
    {% do return(entries) %}
{% endmacro %}


{#
    A map column as the connection returns it: a mapping from a session, JSON from others, and from a thrift server text that is only
    nearly JSON. It puts quotes around a value and leaves those inside as they are: {"mode":"Overwrite","partitionBy":"["day"]"}. There a
    value ends before the next key or the closing brace; of keys that come again inside a value the first counts.
#}
{% macro _as_mapping(value) %}
    {% if value is not string %}
        {% do return(value or {}) %}
    {% endif %}
    {% set found = fromjson(value) %}
    {% if found is mapping %}
        {% do return(found) %}
    {% endif %}
    {% set found = {} %}
    {% for key, raw, text in modules.re.findall('"([\\w.-]+)":(null|"(.*?)")(?=,"[\\w.-]+":(?:null|")|[}]$)', value, modules.re.DOTALL) %}
        {% do found.setdefault(key, none if raw == 'null' else text) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# Walks the log as drawn above. `is_final` is false when the answer may lie further back than `entries`. #}
{% macro _find_last_batch(entries) %}
    {% set walk = namespace(is_final=false, epoch=none, last_batch=none, table_id=none, is_known=false, resume_at=none, oldest=none, record={}, control=none) %}
    {% for entry in entries if not walk.is_final %}
        {% set walk.oldest = entry.version %}
        {% set walk.is_known = walk.is_known or entry.record is not none %}
        {% set is_restored_away = walk.resume_at is not none and entry.version > walk.resume_at %}
        {% if not is_restored_away %}
            {% if entry.operation == 'RESTORE' %}
                {% set walk.epoch = entry.version if walk.epoch is none else walk.epoch %}
                {% set walk.resume_at = dbt_history._restored_version(entry, entries) %}
            {% elif dbt_history._is_reset(entry) %}
                {% set walk.epoch = entry.version if walk.epoch is none else walk.epoch %}
                {% set walk.is_final = true %}
            {% elif entry.record is not none and entry.record.get('batch') is not none %}
                {% set walk.last_batch = entry.record.batch | int %}
                {% set walk.record = entry.record %}
                {% set walk.table_id = entry.record.get('table_id') %}
                {% set walk.epoch = entry.record.get('epoch') if walk.epoch is none else walk.epoch %}
                {% set walk.is_final = true %}
            {% elif entry.record is not none and walk.control is none %}
                {% set walk.control = entry.record.get('control') %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% if walk.oldest is none or walk.oldest == 0 %}
        {% set walk.is_final = true %}
    {% endif %}
    {% do return({
        'is_final': walk.is_final, 'epoch': walk.epoch, 'last_batch': walk.last_batch, 'table_id': walk.table_id,
        'is_restored': walk.resume_at is not none, 'is_known': walk.is_known,
        'watermarks': walk.record.get('watermarks', {}), 'about': walk.record.get('about', {}), 'control': walk.control,
    }) %}
{% endmacro %}


{# After these the table holds none of the batches before. A create at version 0 needs no epoch of its own. #}
{% macro _is_reset(entry) %}
    {% set overwrites = entry.operation == 'WRITE' and entry.parameters.get('mode') == 'Overwrite' and not entry.parameters.get('predicate') %}
    {% do return(overwrites or entry.operation == 'TRUNCATE' or 'REPLACE TABLE' in entry.operation or entry.operation == 'CLONE') %}
{% endmacro %}


{# The version a RESTORE went back to: named by number, or by a time. #}
{% macro _restored_version(entry, entries) %}
    {% set named = entry.parameters.get('version') %}
    {% if named is not none and named | string not in ['', 'None', 'null'] %}
        {% do return(named | int) %}
    {% endif %}
    {% set state = namespace(version=0) %}
    {% for other in entries | sort(attribute='version') if other.timestamp | string <= (entry.parameters.get('timestamp') | string).replace('T', ' ') %}
        {% set state.version = other.version %}
    {% endfor %}
    {% do return(state.version) %}
{% endmacro %}


{# The log's own entries have expired (delta.logRetentionDuration); the transaction ids in its checkpoint stay for ever.
   They outlive a RESTORE too, so after one they say nothing: the batches are applied again, which the rules make harmless. #}
{% macro _last_batch_in_checkpoint(node_id, log) %}
    {% set prefix = 'dbt_history:' ~ node_id ~ ':' ~ log.table_id ~ ':' %}
    {% set sql %}
        select
            max(struct(
                cast(substring(txn.appId, {{ prefix | length + 1 }}) as bigint) as epoch,
                txn.version as last_batch
            )) as newest
        from parquet.`{{ log.location }}/_delta_log/*.checkpoint*.parquet`
        where startswith(txn.appId, {{ dbt_history._text(prefix) }})
    {% endset %}
    {% set row = run_query('select newest.epoch, newest.last_batch from (' ~ sql ~ ') as found').rows[0] %}
    {% do return({
        'is_final': true,
        'epoch': row[0] | int if row[0] is not none else none,
        'last_batch': row[1] | int if row[1] is not none else none,
    }) %}
{% endmacro %}
