{#
    What the table's log records: the table's id, the last batch, and the latest reset.

        version   0       1        2        3         4                5        6
                  create  batch 1  batch 2  optimize  restore to 1     batch 2  batch 3
                                                      '- reset: the app id changes, so that batch 2
                                                         and 3, undone here, are applied again

    The newest record after the newest reset is the last batch; after a RESTORE the search continues
    at the restored version. Returns {'table_id', 'is_empty', 'is_known', 'epoch', 'last_batch',
    'owner', 'app', 'app_id', 'watermarks', 'copies_watermarks', 'about', 'control', 'seen',
    'key', 'misplaced', 'appended', 'rows', 'is_unknown', 'begun'}.
    `is_empty` is valid only without a batch. `is_unknown`: the entries that would tell the last
    batch have expired, or are in the log of the table of which this one is a clone. `is_known`:
    whether a batch, numbered or not, was merged into the table before. `owner`: the model that
    wrote the last batch. `app`: the model in the id of its transactions. `watermarks`: how far the
    batch's sources were read (none: the log's entries have expired). `copies_watermarks`: the
    last run read no changes, and they are of an earlier one. `control`: whether capture was
    suspended or resumed since. `key`: the `unique_key` of that batch, or the one that a rename or a
    change of the key recorded since (none is recorded: none). `seen`: the newest commit.
    `misplaced`: a batch to be undone, see `_undo_misplaced`. `appended`: see `_newest_append`.
    `rows`: see `_rows_by_log`. `begun`: the latest one of `_begun_by` since the last batch.
#}
{% macro _delta_commit_log(relation, node_id) %}
    {% set entries = dbt_history._delta_history_entries(relation, 30) %}
    {% set found = dbt_history._find_last_batch(entries) %}
    {% if not found.is_final or not found.is_whole %}
        {% set entries = dbt_history._delta_history_entries(relation) %}
        {% set found = dbt_history._find_last_batch(entries) %}
    {% endif %}
    {% set seen = {'version': entries[0].version, 'timestamp': entries[0].timestamp} %}
    {#
        A record contains the table's id. Without a record DESCRIBE DETAIL returns the id, which
        is slower, because Delta computes the sizes of all files.
    #}
    {% set log = {'table_id': found.table_id, 'is_empty': false} %}
    {% if not found.table_id %}
        {% set detail = dbt_history._delta_detail(relation) %}
        {% set log = {
            'table_id': detail['id'], 'location': detail['location'],
            'is_empty': (detail['numFiles'] or 0) == 0,
        } %}
    {% endif %}
    {% if not found.is_final %}
        {% set found = dict(found, **dbt_history._last_batch_in_checkpoint(log, found)) %}
    {% endif %}
    {% do log.update({
        'epoch': found.epoch or 0, 'last_batch': found.last_batch,
        'is_known': found.is_known,
        'is_unknown': found.last_batch is none and (found.is_clone or not found.is_final),
    }) %}
    {% do log.update({
        'watermarks': found.watermarks, 'about': found.about,
        'copies_watermarks': found.copies_watermarks,
        'control': found.control or dbt_history._control_by_property(relation, found),
        'begun': found.begun,
    }) %}
    {#
        A model under a new name commits as the old one, of which a run may be in progress. It goes
        on so: another run under the new name may have begun before the first batch under it.
    #}
    {% set app = found.app or found.owner or node_id %}
    {% do log.update({
        'app': app, 'app_id': 'dbt_history:' ~ app ~ ':' ~ log.table_id ~ ':' ~ log.epoch,
        'owner': found.owner, 'misplaced': found.misplaced, 'seen': seen, 'key': found.key,
        'appended': none if log.is_empty or found.misplaced
            else dbt_history._newest_append(entries),
    }) %}
    {% do log.update({'rows': dbt_history._rows_by_log(log)}) %}
    {% do return(log) %}
{% endmacro %}


{#
    What DESCRIBE DETAIL returns. Delta reads the state of the table for it, by a query that takes
    longer to compile than to run, so it is interpreted. The script returns no rows of a command;
    the second statement finds the state that the first one has read.
#}
{% macro _delta_detail(relation, before=none) %}
    {% set detail = 'describe detail ' ~ dbt_history._quoted_relation(relation) %}
    {% set settings = dbt_history._settings_of_interpretation() %}
    {% do dbt_history._guarded_statement(
        'execute immediate ' ~ dbt_history._string_literal(detail), settings,
        before if before is not none else dbt_history._session_settings(settings.keys() | list),
    ) %}
    {% do return(run_query(detail).rows[0]) %}
{% endmacro %}


{#
    Whether the table is suspended, if its log does not say it: after a reset, and if the entries
    have expired. None: it is not, or the log says it.
#}
{% macro _control_by_property(relation, found) %}
    {% set is_asked = found.is_reset or not found.is_final or not found.is_whole %}
    {% do return(
        {'suspended': true} if is_asked
            and dbt_history._table_property(relation, 'dbt_history.suspended') == 'true' else none
    ) %}
{% endmacro %}


{#
    The newest commit that changed rows, if it is an append of this package: {'record', 'rows'};
    none otherwise. What its record says of the table before it holds then, with its rows added,
    without Delta reading the state of the table.

        version   4                       5
                  append, stored 20,      optimize      -> 23 rows
                  numOutputRows 3
#}
{% macro _newest_append(entries) %}
    {% set keep_rows = dbt_history._operations_without_rows() %}
    {% set newest = entries | rejectattr('operation', 'in', keep_rows) | first %}
    {% if not newest or newest.operation != 'WRITE' or newest.record is none
        or newest.metrics.get('numOutputRows') is none %}
        {% do return(none) %}
    {% endif %}
    {% do return({'record': newest.record, 'rows': newest.metrics.numOutputRows | int}) %}
{% endmacro %}


{# Operations of Delta whose commits change neither rows nor columns. #}
{% macro _operations_without_change() %}
    {% do return(['OPTIMIZE', 'REORG', 'VACUUM START', 'VACUUM END', 'SET TBLPROPERTIES']) %}
{% endmacro %}


{# Operations of Delta whose commits change no rows. #}
{% macro _operations_without_rows() %}
    {% do return(dbt_history._operations_without_change() + ['ADD COLUMNS', 'CHANGE COLUMN']) %}
{% endmacro %}


{# The number of rows of the table, if the newest commits say it; none otherwise. #}
{% macro _rows_by_log(log) %}
    {% if log.is_empty %} {% do return(0) %} {% endif %}
    {% set stored = ((log.appended or {}).get('record') or {}).get('stored') %}
    {% do return(none if stored is none else (stored | int) + log.appended.rows) %}
{% endmacro %}


{% macro _delta_history_entries(relation, limit=none) %}
    {% set entries = [] %}
    {% for row in run_query(
        'describe history ' ~ dbt_history._quoted_relation(relation)
            ~ (' limit ' ~ limit if limit else '')
    ).rows %}
        {% set record = row['userMetadata'] %}
        {% set record = fromjson(record)
            if record is string and record.startswith('{') and 'dbt_history' in record else none %}
        {% do entries.append({
            'version': row['version'] | int,
            'timestamp': row['timestamp'],
            'operation': row['operation'],
            'parameters': dbt_history._as_mapping(row['operationParameters']),
            'metrics': dbt_history._as_mapping(row['operationMetrics']),
            'record': record if record is mapping
                and ('dbt_history' in record or 'batch' not in record) else none,
            'said': row['userMetadata'],
            'user': row['userName'],
            'relation': relation,
        }) %}
    {% endfor %}
    {% do return(entries) %}
{% endmacro %}


{#
    Walks the log as drawn above. `is_final` is false if entries older than `entries` may change the
    answer, `is_whole` if some are older than the batch and newer than what its run had seen. A
    batch counts only if the table was not reset between `seen`, the newest commit when its run read
    the log, and the batch's own commit:

        version   3        4          5                      6
                  batch 2  truncate   batch 3, seen 3        undo: restore to 4
                                      '- misplaced: without 1 and 2 it must not stay

    A second run may have committed after a misplaced batch that it had not seen either. Then both
    are undone:

        version   3        4          5                      6
                  batch 2  truncate   batch 3, seen 3        batch 1, seen 4
                                      '- misplaced           '- the newest batch, on top of it
#}
{% macro _find_last_batch(entries) %}
    {% set walk = namespace(
        is_final=false, epoch=none, last_batch=none, table_id=none, is_known=false, resume_at=none,
        oldest=none, record={}, control=none, owner=none, app=none, misplaced=none, key=none,
        is_reset=false, is_whole=true, is_clone=false, copies_watermarks=false, begun=[],
    ) %}
    {% for entry in entries if not walk.is_final %}
        {% set walk.oldest = entry.version %}
        {% set walk.is_known = walk.is_known or entry.record is not none %}
        {% set is_restored_away = walk.resume_at is not none and entry.version > walk.resume_at %}
        {% if not is_restored_away %}
            {% set walk.key = walk.key or (entry.record or {}).get('key') %}
            {% do walk.begun.append(dbt_history._begun_by(entry)) %}
            {# Batches without a number, after the last one with a number, too. #}
            {% set walk.copies_watermarks = walk.copies_watermarks
                or (entry.record or {}).get('copies_watermarks', false) %}
            {% if entry.operation == 'RESTORE' %}
                {% set walk.epoch = entry.version if walk.epoch is none else walk.epoch %}
                {% set walk.resume_at = dbt_history._restored_version(entry) %}
            {% elif dbt_history._is_reset(entry) %}
                {% set walk.epoch = entry.version if walk.epoch is none else walk.epoch %}
                {% set walk.is_final = true %}
                {% set walk.is_reset = true %}
                {% set walk.is_clone = entry.operation == 'CLONE' %}
            {% elif dbt_history._is_misplaced(entry, entries) %}
                {% set walk.misplaced = entry %}
                {% set walk.app = walk.app or (none if walk.owner else entry.record.get('app')) %}
                {% set walk.owner = walk.owner or entry.record.get('model') %}
            {% elif entry.record is not none and entry.record.get('batch') is not none %}
                {% set walk.app = walk.app or (none if walk.owner else entry.record.get('app')) %}
                {% set walk.owner = walk.owner or entry.record.get('model') %}
                {% set walk.last_batch = entry.record.batch | int %}
                {% set walk.record = entry.record %}
                {% set walk.table_id = entry.record.get('table_id') %}
                {% set walk.epoch = entry.record.get('epoch') if walk.epoch is none
                    else walk.epoch %}
                {% set walk.is_final = true %}
                {% set unseen = dbt_history._unseen_by(entry, entries) %}
                {% set walk.is_whole = entries[-1].version <= dbt_history._first_needed(
                    [entry] + unseen, entry.version,
                ) %}
                {% for other in unseen if dbt_history._is_misplaced(other, entries) %}
                    {% set walk.misplaced = other %}
                {% endfor %}
                {% for other in unseen %}
                    {% do walk.begun.append(dbt_history._begun_by(other)) %}
                {% endfor %}
                {% set walk.control = walk.control or dbt_history._unseen_control(entry, entries)
                    or entry.record.get('unseen_control') %}
            {% elif entry.record is not none and walk.control is none %}
                {% set walk.control = entry.record.get('control') %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% if walk.oldest is none or walk.oldest == 0 %}
        {% set walk.is_final = true %}
    {% endif %}
    {% do return({
        'is_final': walk.is_final, 'epoch': walk.epoch, 'last_batch': walk.last_batch,
        'table_id': walk.table_id,
        'restored_to': walk.resume_at, 'is_known': walk.is_known, 'owner': walk.owner,
        'app': walk.app, 'misplaced': walk.misplaced,
        'watermarks': walk.record.get('watermarks', {}), 'about': walk.record.get('about', {}),
        'copies_watermarks': walk.copies_watermarks,
        'control': walk.control, 'is_reset': walk.is_reset, 'is_whole': walk.is_whole,
        'key': walk.key, 'is_clone': walk.is_clone,
        'begun': walk.begun | reject('none') | max | default(none),
    }) %}
{% endmacro %}


{#
    What was suspended or resumed between the commit that the batch's run had `seen` and the batch:
    the run did not know it. None if nothing was. Later batches of the run have seen more, and
    repeat it in their record:

        version   4          5          6                  7
                  batch 2    suspend    batch 3, seen 4    batch 4, seen 6,         the table is
                                                           unseen_control: suspend  suspended
#}
{% macro _unseen_control(batch, entries) %}
    {% set controls = [] %}
    {% for entry in dbt_history._unseen_by(batch, entries) if (entry.record or {}).get('control') %}
        {% do controls.append(entry.record.control) %}
    {% endfor %}
    {% do return(controls | first if controls else none) %}
{% endmacro %}


{#
    The entries between the commit that the batch's run had `seen` and the batch itself, newest
    first.
#}
{% macro _unseen_by(batch, entries) %}
    {% set seen = (batch.record or {}).get('seen') %}
    {% set found = [] %}
    {% for entry in entries if seen is not none and seen | int < entry.version < batch.version %}
        {% do found.append(entry) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# The oldest version, at most `version`, that tells whether one of these commits is misplaced. #}
{% macro _first_needed(entries, version) %}
    {% set versions = [version] %}
    {% for entry in entries if (entry.record or {}).get('batch') is not none
        and entry.record.get('seen') is not none %}
        {% do versions.append(entry.record.seen | int + 1) %}
    {% endfor %}
    {% do return(versions | min) %}
{% endmacro %}


{#
    Whether the table was reset between the commit that the batch's run had `seen` and the batch
    itself: the earlier batches are missing then. Or whether an operation that hides its rows came
    between them.
#}
{% macro _is_misplaced(entry, entries) %}
    {% set record = entry.record or {} %}
    {% if record.get('batch') is none %}
        {% do return(false) %}
    {% endif %}
    {% for other in dbt_history._unseen_by(entry, entries)
        if other.operation == 'RESTORE' or dbt_history._is_reset(other)
        or (record.get('staged_rows') and dbt_history._hides_changes(other, record)) %}
        {% do return(true) %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{#
    Whether the commit removes all earlier batches from the table. A CREATE at version 0 does not
    start a new epoch.
#}
{% macro _is_reset(entry) %}
    {% set overwrites = entry.operation == 'WRITE' and entry.parameters.get('mode') == 'Overwrite'
        and not entry.parameters.get('predicate') %}
    {% do return(
        overwrites or entry.operation == 'TRUNCATE' or 'REPLACE TABLE' in entry.operation
            or entry.operation == 'CLONE'
    ) %}
{% endmacro %}


{#
    The version that a RESTORE restored. The entry of a RESTORE by time does not contain it: the log
    has the time as text, in the time zone of the JVM that wrote it, and Delta parses it in the time
    zone of the session. So it is found by content: the newest version with the files, and if
    possible the settings, of the RESTORE's result.
#}
{% macro _restored_version(entry) %}
    {% set named = entry.parameters.get('version') %}
    {% if named is not none and named | string not in ['', 'None', 'null'] %}
        {% do return(named | int) %}
    {% endif %}
    {% set location = run_query(
        'describe detail ' ~ dbt_history._quoted_relation(entry.relation)
    ).rows[0]['location'] %}
    {% set rows = run_query(dbt_history._same_state_sql(location, entry.version)).rows %}
    {% do return(rows[0][0] | int if rows | length else 0) %}
{% endmacro %}


{#
    The newest version before `version` in which the table had the same files, preferably also the
    same settings; read from the commits. A file is identified with its deletion vector:

        version     4       5        6       7 (restore)
        file a      add              remove  add          as in 7: versions 4 and 5
        file b              add              remove       as in 7: version 4
#}
{% macro _same_state_sql(location, version) %}
    {% set file = 'struct<path: string, deletionVector: struct<storageType: string,'
        ~ ' pathOrInlineDv: string, offset: int>>' %}
    with actions as (
        select
            cast(left(_metadata.file_name, 20) as bigint) as version,
            from_json(value, 'add {{ file }}, remove {{ file }}, metaData string') as action
        from text.`{{ location }}/_delta_log/[0-9]*.json`
        where _metadata.file_name rlike '^[0-9]{20}[.]json$'
    ),

    past as (
        select *
        from actions
        where version <= {{ version }}
    ),

    files as (
        select
            version,
            action.add is not null as is_there,
            to_json(coalesce(action.add, action.remove)) as file
        from past
        where action.add is not null or action.remove is not null
    ),

    changes as (
        select
            version,
            lag(version, 1, -1) over (partition by file order by version) as since,
            is_there <=> last_value(is_there) over (
                partition by file
                order by version
                rows between unbounded preceding and unbounded following
            ) as is_as_restored
        from files
    ),

    versions as (
        select
            version,
            last_value(max(action.metaData), true) over (order by version) as settings
        from past
        group by version
    )

    select versions.version
    from versions
    cross join (select settings from versions where version = {{ version }}) as restored
    where
        versions.version < {{ version }}
        and not exists (
            select 1
            from changes
            where changes.is_as_restored and changes.since <= versions.version
                and versions.version < changes.version
        )
    order by versions.settings <=> restored.settings desc, versions.version desc
    limit 1
{% endmacro %}


{#
    For a log whose entries have expired (delta.logRetentionDuration): the transaction ids in the
    checkpoints do not expire. A RESTORE does not remove them, so after one only the checkpoints up
    to the restored version count; if they have expired, too, the last batch is not known.

        version   3              4          9           10              11
                  checkpoint:    batch 3    checkpoint: restore to 4    log from 4 or 9 on
                  2              .          3           .
#}
{% macro _last_batch_in_checkpoint(log, found) %}
    {% set pattern = '^dbt_history:(.+):' ~ log.table_id ~ ':([0-9]+)$' %}
    {% set sql %}
        select
            max(struct(
                cast(
                    regexp_extract(
                        txn.appId, {{ dbt_history._string_literal(pattern) }}, 2
                    ) as bigint
                ) as epoch,
                txn.version as last_batch,
                regexp_extract(txn.appId, {{ dbt_history._string_literal(pattern) }}, 1) as owner
            )) as newest
        from parquet.`{{ log.location }}/_delta_log/*.checkpoint*.parquet`
        where
            txn.appId rlike {{ dbt_history._string_literal(pattern) }}
            {%- if found.restored_to is not none %}
            and cast(left(_metadata.file_name, 20) as bigint) <= {{ found.restored_to }}
            {%- endif %}
    {% endset %}
    {% set row = run_query(
        'select newest.epoch, newest.last_batch, newest.owner from (' ~ sql ~ ') as found'
    ).rows[0] %}
    {% set epoch = found.epoch if found.restored_to is not none else row[0] %}
    {% do return({
        'epoch': epoch | int if epoch is not none else none,
        'last_batch': row[1] | int if row[1] is not none else none,
        'owner': row[2], 'app': row[2], 'watermarks': none, 'about': none,
    }) %}
{% endmacro %}
