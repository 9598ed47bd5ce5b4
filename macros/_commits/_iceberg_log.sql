{#
    What an Iceberg table records: the record of a batch is a property in the summary of its
    snapshot.

        snapshots   s0 ------ s1 ------ s2 ------ s3 ------ s4      `main` points to s4; the chain
                    create    batch 1   batch 2   compact   batch 3   of its parents is the log
                              \--- t2      another run's batch 2, never published, or a snapshot
                                          that was rolled back

    The newest record on the chain is the last batch. The walk ends at a snapshot that replaced all
    rows without a record (truncate, overwrite) and at the first snapshot: no batch is applied; a
    table that was suspended before stays suspended. If snapshots have expired, it goes on with the
    records in a property of the table, see `_keep_records`.

    Returns what `_delta_commit_log` returns, and `snapshot`, the id of s4 (none: an empty table
    without one).
#}
{% macro _iceberg_commit_log(relation) %}
    {% set chain = dbt_history._snapshot_chain(relation, 30) %}
    {% set found = dbt_history._last_record(chain) %}
    {% if not found.is_whole and chain.is_cut %}
        {% set chain = dbt_history._snapshot_chain(relation) %}
        {% set found = dbt_history._last_record(chain) %}
    {% endif %}
    {% if not found.is_whole %}
        {% set expired = dbt_history._expired_entries(
            dbt_history._kept_records(relation), chain.entries[-1],
        ) %}
        {% set found = dbt_history._last_record(dict(chain, entries=chain.entries + expired)) %}
    {% endif %}
    {% set record = found.record %}
    {% set head = chain.entries[0] if chain.entries else {} %}
    {% do return({
        'snapshot': head.get('version'), 'table_id': none, 'epoch': 0, 'app_id': none,
        'is_empty': (head.get('summary') or {}).get('total-records', '0') == '0',
        'is_known': found.is_known, 'is_unknown': not found.is_final or found.may_be_update,
        'last_batch': record.batch | int if record is not none else none,
        'owner': (record or {}).get('model'),
        'watermarks': (record or {}).get('watermarks', {}),
        'copies_watermarks': found.copies_watermarks,
        'about': (record or {}).get('about', {}), 'control': found.control,
        'key': found.key, 'begun': found.begun,
    }) %}
{% endmacro %}


{#
    The newest batch on the chain: {'record', 'is_final', 'is_whole', 'is_known', 'control', 'key',
    'may_be_update', 'begun', 'copies_watermarks'}. `is_whole`: nothing older can change the answer;
    `is_final`: nor the batch.
    `may_be_update`: the snapshot that ended the search may be an UPDATE that rewrote the only file.
#}
{% macro _last_record(chain) %}
    {% set walk = namespace(
        record=none, is_known=false, control=none, key=none, is_reset=false, is_whole=false,
        may_be_update=false, begun=[], copies_watermarks=false,
    ) %}
    {% for entry in chain.entries if not walk.is_whole %}
        {% if not walk.is_reset %}
            {% do walk.begun.append(dbt_history._begun_by(entry)) %}
            {# Batches without a number, after the last one with a number, too. #}
            {% set walk.copies_watermarks = walk.copies_watermarks
                or (entry.record or {}).get('copies_watermarks', false) %}
            {% set walk.key = walk.key or (entry.record or {}).get('key') %}
            {% set walk.is_known = walk.is_known or entry.record is not none %}
        {% endif %}
        {% if entry.record is none and entry.replaces_all %}
            {% set walk.may_be_update = entry.may_be_update if not walk.is_reset
                else walk.may_be_update %}
            {% set walk.is_reset = true %}
        {% elif entry.record is not none and entry.record.get('batch') is not none %}
            {% set walk.record = none if walk.is_reset else entry.record %}
            {% set walk.control = walk.control or entry.record.get('unseen_control') %}
            {% set walk.is_whole = true %}
        {% elif entry.record is not none and walk.control is none %}
            {% set walk.control = entry.record.get('control') %}
        {% endif %}
    {% endfor %}
    {% set is_whole = walk.is_whole or not chain.entries or chain.entries[-1].is_first %}
    {% do return({
        'record': walk.record, 'is_known': walk.is_known, 'control': walk.control, 'key': walk.key,
        'is_final': is_whole or walk.is_reset, 'is_whole': is_whole,
        'may_be_update': walk.may_be_update,
        'begun': walk.begun | reject('none') | max | default(none),
        'copies_watermarks': walk.copies_watermarks,
    }) %}
{% endmacro %}


{#
    The records in the table's property, newest first. A release before this one kept only one.
#}
{% macro _kept_records(relation) %}
    {% set kept = dbt_history._property_value(
        dbt_history._table_property(relation, 'dbt_history.last_batch')
    ) or [] %}
    {% do return([kept] if kept is mapping else kept) %}
{% endmacro %}


{#
    Of the kept records, newest first, those before the oldest remaining snapshot, as entries of the
    chain: from its parent on. If the parent has no record, those that are not later: a later one is
    on the chain, or undone.

        chain     s1 ------ s2 ------ s3            property: 3 at s3, 2 at s2, 1 at s1
                             \--- s4               rolled back to s2, then compacted
        expired              s4                     its parent is s2: batch 2, not 3
#}
{% macro _expired_entries(kept, oldest) %}
    {% set entries = [] %}
    {% set has_parent = oldest.parent is not none
        and oldest.parent in kept | map(attribute='version', default=none) | list %}
    {% set state = namespace(is_before=false) %}
    {% for record in kept %}
        {% set state.is_before = state.is_before or (
            record.version == oldest.parent if has_parent else record.micros < oldest.micros
        ) %}
        {% if state.is_before %}
            {% do entries.append({
                'record': record, 'version': record.get('version'), 'micros': record.micros,
                'replaces_all': false, 'is_first': false, 'may_be_update': false,
            }) %}
        {% endif %}
    {% endfor %}
    {% do return(entries) %}
{% endmacro %}


{#
    Stores the records of batches, rewinds and controls in a property of the table, for when their
    snapshots have expired. Those after the oldest remaining snapshot are of no use then: a rollback
    undid them, or they are on the chain.

        chain      s1 ------ s2 ------ s3 ------- s4           property: 3 at s4, 2 at s2, 1 at s1
                   batch 1   batch 2   compact    batch 3
        expired                        s3 ------- s4
        rollback                       s3                      the newest up to s3: batch 2
#}
{% macro _keep_records(relation) %}
    {% set chain = dbt_history._snapshot_chain(relation, 30) %}
    {% set before = dbt_history._kept_records(relation) %}
    {% set kept = [] %}
    {% set walk = namespace(is_reset=false, has_batch=false, has_copy=false) %}
    {% set expired = dbt_history._expired_entries(before, chain.entries[-1])
        if chain.entries else [] %}
    {% for entry in chain.entries + expired if kept | length < 100 %}
        {% set is_batch = (entry.record or {}).get('batch') is not none %}
        {% set is_begun = (entry.record or {}).get('begun') is not none %}
        {# Of batches without a number the newest is enough to tell that there is one. #}
        {% set is_copy = (entry.record or {}).get('copies_watermarks', false)
            and not (walk.has_batch or walk.has_copy) %}
        {% if ((is_batch or is_begun or is_copy) and not walk.is_reset)
            or (entry.record or {}).get('control') %}
            {% do kept.append(dbt_history._kept_record(entry, not walk.has_batch)) %}
            {% set walk.has_batch = walk.has_batch or is_batch %}
            {% set walk.has_copy = walk.has_copy or is_copy %}
        {% endif %}
        {# Of what was there before all rows were replaced, only a suspension still holds. #}
        {% set walk.is_reset = walk.is_reset or (entry.record is none and entry.replaces_all)
            or entry.is_first %}
    {% endfor %}
    {% if kept != before %}
        {% do run_query(dbt_history._property_sql(
            relation, 'dbt_history.last_batch', dbt_history._property_text(kept),
        )) %}
    {% endif %}
{% endmacro %}


{# Only the last batch keeps how far it read its sources; of earlier ones this is not known. #}
{% macro _kept_record(entry, is_last) %}
    {% set kept = {'micros': entry.micros, 'version': entry.version} %}
    {% for name, value in entry.record.items() if value is not none and name in [
        'batch', 'model', 'key', 'control', 'unseen_control', 'watermarks', 'about',
        'copies_watermarks', 'begun',
    ] %}
        {% do kept.update({
            name: none if name in ['watermarks', 'about'] and not is_last else value
        }) %}
    {% endfor %}
    {% do return(kept) %}
{% endmacro %}


{% macro _iceberg_history_entries(relation, limit) %}
    {% do return(dbt_history._snapshot_chain(relation, limit).entries) %}
{% endmacro %}


{#
    The snapshot of `main` and its ancestors, newest first, as far as they are retained:
    {'entries', 'is_cut'}; `is_cut`: `limit` may have ended the chain. If another writer commits
    between the reads of the two metadata tables, the snapshot of `main` is missing, and the query
    is repeated.
#}
{% macro _snapshot_chain(relation, limit=none) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% set sql %}
        select to_json(struct(
            snapshots.snapshot_id as version,
            snapshots.parent_id as parent,
            unix_micros(snapshots.committed_at) as micros,
            cast(snapshots.committed_at as string) as timestamp,
            snapshots.operation,
            snapshots.summary,
            heads.snapshot_id is not null as is_head
        )) as snapshot
        from {{ name }}.snapshots as snapshots
        left join (select snapshot_id from {{ name }}.refs where name = 'main') as heads
            on snapshots.snapshot_id = heads.snapshot_id
        order by snapshots.committed_at desc
        {{ 'limit ' ~ limit if limit }}
    {% endset %}
    {% set state = namespace(next=none, rows=[], limit=limit) %}
    {% for attempt in range(3) if state.next is none %}
        {% set state.rows = run_query(sql.replace('limit ' ~ limit, '') if attempt else sql).rows %}
        {% set state.limit = none if attempt else limit %}
        {% set found = {} %}
        {% for row in state.rows %}
            {% set snapshot = fromjson(row[0]) %}
            {% do found.update({snapshot.version: snapshot}) %}
            {% set state.next = snapshot.version if snapshot.is_head else state.next %}
        {% endfor %}
        {% if state.next is not none %}
            {% set chain = [] %}
            {% for step in range(found | length) if state.next in found %}
                {% do chain.append(dbt_history._snapshot_entry(relation, found[state.next])) %}
                {% set state.next = found[state.next].get('parent', 'none') %}
            {% endfor %}
            {% do return({
                'entries': chain,
                'is_cut': state.limit is not none and state.rows | length == state.limit,
            }) %}
        {% elif not state.rows %}
            {% do return({'entries': [], 'is_cut': false}) %}
        {% endif %}
    {% endfor %}
    {% do return({'entries': [], 'is_cut': false}) %}
{% endmacro %}


{#
    A snapshot as an entry of `_history_entries`, with the operation names of Delta.
#}
{% macro _snapshot_entry(relation, snapshot) %}
    {% set summary = snapshot.summary or {} %}
    {% set merge = 'spark.merge-into.num-target-rows-' %}
    {% set is_merge = merge ~ 'inserted' in summary %}
    {% set metrics = {'numOutputRows': summary.get('added-records', '0')} %}
    {% if is_merge %}
        {% do metrics.update({
            'numTargetRowsInserted': summary[merge ~ 'inserted'],
            'numTargetRowsUpdated': summary[merge ~ 'matched-updated'],
            'numTargetRowsDeleted': summary[merge ~ 'matched-deleted'],
        }) %}
    {% endif %}
    {% set operation = {
        'append': 'WRITE', 'delete': 'DELETE', 'replace': 'OPTIMIZE',
    }.get(snapshot.operation, 'WRITE') %}
    {% set total = summary.get('total-records', '0') | int %}
    {% set is_rewritten = 'deleted-data-files' in summary
        and total == summary.get('added-records', '0') | int %}
    {% do return(dict(
        snapshot,
        parent=snapshot.get('parent'),
        is_first=snapshot.get('parent') is none,
        operation='MERGE' if is_merge else operation,
        parameters={'mode': 'Overwrite'} if snapshot.operation == 'overwrite' and not is_merge
            else {},
        metrics=metrics,
        replaces_all=snapshot.operation in ['delete', 'overwrite'] and (total == 0 or is_rewritten),
        may_be_update=total > 0 and 'replace-partitions' not in summary,
        record=dbt_history._own_record(relation, snapshot),
        said=summary.get('dbt_history'),
        user=none,
    )) %}
{% endmacro %}


{#
    The record in a snapshot, if it belongs to this snapshot. Iceberg writes the session's setting
    into every snapshot, so a setting that a failed statement left could mark another snapshot.
    Therefore the record of a batch contains its parent snapshot, other records their table.
#}
{% macro _own_record(relation, snapshot) %}
    {% set said = (snapshot.summary or {}).get('dbt_history') %}
    {% set record = fromjson(said, none) if said else none %}
    {% if record is not mapping %}
        {% do return(none) %}
    {% elif 'parent' in record %}
        {% do return(record if record.parent == snapshot.get('parent') else none) %}
    {% endif %}
    {% do return(
        record if record.get('table') == dbt_history._quoted_relation(relation) else none
    ) %}
{% endmacro %}
