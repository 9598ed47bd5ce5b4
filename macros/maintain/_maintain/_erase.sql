{#
    The table that the operation names: {'name', 'relation', 'key', 'kept', 'is_log'}; `kept`: the
    columns that an erasure leaves, in lower case. A log says its key itself, or its node does.
#}
{% macro _subject_table(table, convention, key, problems) %}
    {% set log = dbt_history._erased_log(table) if table is string else none %}
    {% if log is not none %}
        {% set node = dbt_history._node_named(table, 'erase_subject') %}
        {% set key = dbt_history._key_columns(
            key or log.key or ((node or {}).get('config') or {}).get('unique_key')
        ) %}
        {% do problems.append(table ~ ': name the key columns (key)') if not key %}
        {% do return(dict(log, name=table, key=key)) %}
    {% endif %}
    {% set tables = dbt_history._maintained(table, convention, key, 'erase_subject') %}
    {% do problems.append('name one table; the others are mirrors') if tables | length > 1 %}
    {% set main = tables | first %}
    {% do dbt_history._find_namespace(main) %}
    {# What links the states to each other: the next write of the feature continues them. #}
    {% set of_state = [
        main.namespace | lower, 'author_txn', 'created_txn', 'purged_txn', 'resync',
    ] if main.namespace else [] %}
    {% set kept = dbt_history._identity_columns(main.convention)
        + dbt_history._period_columns(main.convention) %}
    {# By its id dbt finds the version that it closes. #}
    {% set node = main.get('node') or {'config': {}} %}
    {% set meta = dbt_history._node_meta(node).get('history') %}
    {% set of_snapshot = dbt_history._names_of_snapshot(node).values() | list
        + ((meta.get('snapshot_columns') or {}) if meta is mapping else {}).values() | list %}
    {% do return(dict(
        main, is_log=false,
        kept=(kept + of_snapshot) | map('lower') | unique | list + of_state,
    )) %}
{% endmacro %}


{#
    A log: {'relation', 'is_log', 'key', 'kept', 'renamed', 'reused' (`_former_names`)}; none if it
    is another table, or none at all. Kept is what makes the row a row of the log, and who wrote it:
    an auditor still needs both. The names of a mirror's links may have expired with its commits
    (`has_unknown_links`).
#}
{% macro _erased_log(name) %}
    {% set relation = dbt_history._mirror_relation(name, 'erase_subject') %}
    {% if relation is none or relation.is_view %}
        {% do return(none) %}
    {% endif %}
    {% set node = dbt_history._node_named(name, 'erase_subject') %}
    {% set relation = dbt_history._with_format(relation) %}
    {% set recorded = (dbt_history._commit_log(relation, '') or {}).get('about') %}
    {% set about = recorded or {} %}
    {% set of_log = about.get('hx') or about.get('events') or {} %}
    {% set former = of_log or about.get('changes') or {} %}
    {% if not of_log and ((node or {}).get('config') or {}).get('materialized') != 'history_append'
        and (relation.is_iceberg or dbt_history._log_lock(relation) is none) %}
        {% do return(none) %}
    {% endif %}
    {% set names = dbt_history._table_columns(relation) | map(attribute='name') | map('lower')
        | list %}
    {% set kept = [
        '_hist_trans_id', '_hist_event', '_hist_time', '_hist_user', '_change_type',
        '_commit_version', '_commit_timestamp', '_changed_by', '_batch',
    ] + [(of_log.get('id') or '') | lower] + of_log.get('links', []) | map('lower') | list %}
    {% for column in names if column.endswith('_hx_id') %}{% do kept.append(column) %}{% endfor %}
    {% set is_mirror = 'mod_time' in names and 'deleted' in names %}
    {% do kept.extend(['mod_time', 'mod_user', 'deleted']) if is_mirror %}
    {% set has_unknown_links = is_mirror and recorded is none %}
    {% set is_log_of_writes = dbt_history._is_log_of_writes(names) %}
    {% do kept.extend(dbt_history._write_columns().keys()) if is_log_of_writes %}
    {% do return({
        'relation': relation, 'is_log': true, 'is_log_of_writes': is_log_of_writes,
        'key': of_log.get('key'), 'has_unknown_links': has_unknown_links,
        'reserved': dbt_history._own_columns({'id': of_log.get('id')})
            if about.get('hx') or has_unknown_links else [],
        'kept': kept | select('in', names) | unique | list,
        'renamed': former.get('renamed', {}), 'reused': former.get('reused', []),
    }) %}
{% endmacro %}


{# Whether a table is a log of writes of features, by the names of its columns in lower case. #}
{% macro _is_log_of_writes(names) %}
    {% do return(
        ['txn', 'position', 'action', 'app_id', 'at'] | reject('in', names) | list == []
    ) %}
{% endmacro %}


{#
    The tables that hold the same subject. Of a table of states, the logs of writes that its model
    reads; of a log of writes, the tables of states that read it; of any other table, the models
    with the same source. `named`: the mirrors that are named beside them.

        source edits (the log)  -->  view stg_edits  -->  model states
        '- found by dbt's lineage, through views and other models -'
#}
{% macro _tables_of_subject(main, named, problems) %}
    {% if not main.get('namespace') and not main.get('is_log_of_writes') %}
        {% do return(dbt_history._same_source(main, named, problems)) %}
    {% endif %}
    {% set own = dbt_history._quoted_relation(main.relation) | lower %}
    {% set found = [] %}
    {% if main.get('namespace') %}
        {% for name in dbt_history._upstream_tables(main.node) %}
            {% set relation = dbt_history._mirror_relation(name, 'erase_subject') %}
            {% if relation is not none and not relation.is_view %}
                {% set columns = dbt_history._table_columns(relation) %}
                {% set names = columns | map(attribute='name') | map('lower') | list %}
                {% do found.append(name) if dbt_history._is_log_of_writes(names)
                    and not dbt_history._missing_columns(main.key, columns) %}
            {% endif %}
        {% endfor %}
    {% else %}
        {% for node in graph.nodes.values() if node.resource_type == 'model'
            and dbt_history._makes_versions(node) %}
            {% for name in dbt_history._upstream_tables(node) %}
                {% set relation = dbt_history._mirror_relation(name, 'erase_subject') %}
                {% do found.append(node.schema ~ '.' ~ node.alias) if relation is not none
                    and dbt_history._quoted_relation(relation) | lower == own %}
            {% endfor %}
        {% endfor %}
    {% endif %}
    {% do problems.append(
        "mirrors: all finds no "
            ~ ('log of writes' if main.get('namespace') else 'table of states') ~ ' of ' ~ main.name
            ~ ' in the lineage: name it too, mirrors: [all, <schema.table>]'
    ) if not found and not named %}
    {% do return(found | unique | sort) %}
{% endmacro %}


{# What a model reads, through any number of nodes: [schema.table] of tables, sources, views. #}
{% macro _upstream_tables(node) %}
    {% set names = [] %}
    {% set seen = [] %}
    {% set ids = (node or {}).get('depends_on', {}).get('nodes', []) | list %}
    {% for step in range(1000) if ids %}
        {% set id = ids.pop() %}
        {% if id not in seen %}
            {% do seen.append(id) %}
            {% set found = graph.nodes.get(id) or graph.sources.get(id) or {} %}
            {% set table = found.get('alias') or found.get('identifier') %}
            {% do names.append(found.schema ~ '.' ~ table) if table %}
            {% do ids.extend(found.get('depends_on', {}).get('nodes', [])) %}
        {% endif %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    The models of the project that take their rows from the same source as a table, or from the
    table itself. They hold the same keys. A model whose source is not certain is a problem if it
    may be the same one, unless it is named.
#}
{% macro _same_source(main, named, problems) %}
    {% set own_name = dbt_history._quoted_relation(main.relation) | lower %}
    {% set own = dbt_history._sources_of(
        main.relation, dbt_history._node_of_relation(main.relation),
    ) %}
    {% set uncertain = [] if own.is_certain else [main.name] %}
    {% set found, nodes = [], [] %}
    {% for node in graph.nodes.values() if node.resource_type == 'model' and (
        dbt_history._makes_versions(node) or node.config.get('materialized') == 'history_append'
    ) %}
        {% do nodes.append(node) %}
    {% endfor %}
    {% set names = dbt_history._unmistakable_names(nodes) %}
    {% for node in nodes %}
        {% set name = names[loop.index0] %}
        {% set relation = dbt_history._mirror_relation(name, 'erase_subject') %}
        {% set sources = dbt_history._sources_of(relation, node)
            if relation is not none and not relation.is_view
                and dbt_history._quoted_relation(relation) | lower != own_name
            else {'names': [], 'is_certain': true} %}
        {% set is_same = sources.names | select('in', own.names + [own_name]) | list | length > 0 %}
        {% if is_same and sources.is_certain %}
            {% do found.append(name) %}
        {% elif not sources.is_certain and (is_same or not sources.names)
            and name not in named and node.schema ~ '.' ~ node.alias not in named %}
            {% do uncertain.append(name) %}
        {% endif %}
    {% endfor %}
    {% do problems.append(
        'mirrors: all is not certain which table is the source of '
            ~ uncertain | sort | join(', ') ~ ': name the mirrors instead'
    ) if uncertain %}
    {% do return(found | sort) %}
{% endmacro %}


{#
    The sources of a model's rows: {'names', 'is_certain'}, by the record in its newest commit. If a
    SELECT was compared, or the record has expired, by dbt's lineage up to the first table. It is
    certain only if it does not fork: of two tables that are joined, one may only be looked up.

        table people  -->  view stg_people  -->  model people_h: select id, name from stg_people
#}
{% macro _sources_of(relation, node) %}
    {% set log = dbt_history._commit_log(dbt_history._with_format(relation), '') or {} %}
    {% set watermarks = log.get('watermarks') %}
    {% set names = (watermarks or {}).keys() | map('lower') | reject('equalto', '(select)')
        | list %}
    {% if watermarks is not none and '(select)' not in watermarks %}
        {% do return({'names': names, 'is_certain': true}) %}
    {% endif %}
    {% set lineage = dbt_history._sources_by_lineage(node) %}
    {% do return(dict(lineage, names=(names + lineage.names) | unique | list)) %}
{% endmacro %}


{# The sources of a node up to the first table, by dbt's lineage, as `_sources_of` returns them. #}
{% macro _sources_by_lineage(node) %}
    {% set names = [] %}
    {% set ids = (node or {}).get('depends_on', {}).get('nodes', []) | list %}
    {% set walk = namespace(ids=ids, is_certain=ids | length > 0) %}
    {% for step in range(1000) if walk.ids %}
        {% set walk.is_certain = walk.is_certain and walk.ids | length == 1 %}
        {% set id = walk.ids[0] %}
        {% set found = graph.nodes.get(id) or graph.sources.get(id) or {} %}
        {% set table = found.get('alias') or found.get('identifier') %}
        {% do names.append(dbt_history._quoted_relation(
            api.Relation.create(schema=found.schema, identifier=table),
        ) | lower) if table %}
        {% set is_table = (found.get('config') or {}).get('materialized')
            not in ['view', 'ephemeral'] %}
        {% set walk.ids = walk.ids[1:] + (
            [] if is_table else found.get('depends_on', {}).get('nodes', []) | list
        ) %}
    {% endfor %}
    {% do return({'names': names | unique | list, 'is_certain': walk.is_certain}) %}
{% endmacro %}


{#
    The tables with what is erased in each: {'name', 'relation', 'columns', 'rows', 'changed',
    'lock', 'is_log', 'left'}; `changed` counts the rows that still hold a value. In a log
    everything is erased that the log does not need; in another mirror, and in the log of writes of
    a table of states, the columns that are erased in the table; `left` names its other columns.
    Errors are appended to `problems`.
#}
{% macro _erased_places(main, only, columns, mirrors, problems) %}
    {% set only = only if only is mapping else {} %}
    {% set main_columns = dbt_history._table_columns(main.relation) %}
    {% set erased = dbt_history._erased_columns(main, main_columns, only, columns, problems) %}
    {% set tables, full_names = [main], [dbt_history._quoted_relation(main.relation)] %}
    {% set mirrors = [mirrors] if mirrors is string else mirrors or [] %}
    {% set is_all = 'all' in mirrors %}
    {% set named = mirrors | reject('equalto', 'all') | list %}
    {% if is_all %}
        {% set named = named + dbt_history._tables_of_subject(main, named, problems) %}
    {% endif %}
    {% for mirror in named %}
        {% set relation = dbt_history._mirror_relation(mirror, 'erase_subject') %}
        {% if relation is none or relation.is_view %}
            {% do problems.append('mirror ' ~ mirror ~ ': there is no such table') %}
        {% elif dbt_history._quoted_relation(relation) not in full_names %}
            {% do tables.append(
                dbt_history._erased_log(mirror) or {'relation': relation, 'is_log': false}
            ) %}
            {% do full_names.append(dbt_history._quoted_relation(relation)) %}
        {% endif %}
    {% endfor %}
    {% set places = [] %}
    {% for table in tables %}
        {% set relation = table.relation %}
        {% set there = main_columns if loop.first else dbt_history._table_columns(relation) %}
        {% set names = there | map(attribute='name') | map('lower') | list %}
        {% set lacking = dbt_history._missing_columns(main.key, there) %}
        {% if lacking %}
            {% do problems.append(relation ~ ': has no key column ' ~ lacking | join(', ')) %}
        {% else %}
            {% set kept = table.get('kept', []) + main.key | map('lower') | list %}
            {% do problems.append(
                relation ~ ': the commits that name its links have expired: name the columns to'
                    ~ ' erase'
            ) if table.get('has_unknown_links') and columns is none
                and not main.get('namespace') %}
            {% set own_names = dbt_history._with_former_names(table, erased, names, problems)
                if columns is not none else erased %}
            {% set gone = [] %}
            {% for column in there if column.name | lower not in kept
                and (
                    columns is none and table.is_log and not main.get('namespace')
                        or dbt_history._main_name(
                            column.name, table.get('reserved', []),
                        ) | string | lower in own_names
                ) %}
                {% do gone.append(column) %}
            {% endfor %}
            {% for problem in dbt_history._key_problems(only, there) %}
                {% do problems.append(relation ~ ': ' ~ problem) %}
            {% endfor %}
            {% set own = kept + gone | map(attribute='name') | map('lower') | list
                + main.get('kept', []) %}
            {% do places.append({
                'name': dbt_history._quoted_relation(relation), 'relation': relation,
                'columns': gone, 'there': there, 'rows': 0, 'changed': 0,
                'is_log': table.is_log,
                'left': names | reject('in', own) | list
                    if columns is none and not table.is_log and not loop.first else [],
            }) %}
        {% endif %}
    {% endfor %}
    {% if not problems %}
        {% for place in places %}
            {% do dbt_history._check_place(place, only, problems) %}
            {% do dbt_history._check_unread(place, only, problems) %}
        {% endfor %}
        {% if not places | sum(attribute='rows') %}
            {% do problems.append('no table has a row of this key') %}
        {% endif %}
        {% do dbt_history._check_copies(main, places, only, problems) %}
    {% endif %}
    {% do return(places) %}
{% endmacro %}


{#
    The names of the erased columns in a log, with their former names, in lower case. A former name
    that other columns have had, too, has to be named: all its values are erased. `there`: the names
    of the log's columns in lower case.

        rows of the log   mail a | email c | email d, mail m      m is of a column that was added
        columns: email    refused
        columns: both     -      | -       | -        -
#}
{% macro _with_former_names(table, erased, there, problems) %}
    {% set names = erased | list %}
    {% for name in erased %}
        {% for former in table.get('renamed', {}).get(name, [])
            if former not in names
                and dbt_history._stored_name(former, table.reserved) | lower in there %}
            {% do names.append(former) %}
            {% do problems.append(
                table.relation ~ ': ' ~ name ~ ' was called ' ~ former
                    ~ ', which is the name of another column, too: erase this table with columns '
                    ~ name ~ ' and ' ~ former
            ) if former in table.reused %}
        {% endfor %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    A change that a table has not read yet would bring the data back: a log records what it replaces
    or removes, a version table what it inserts or sets.

        main table   7 Ada ----------- 7 Eve ------- 7 deleted
        log          7 Ada   7 erased                run: 7 deleted, the last values are Eve's
        versions     [ 7 erased --------             run: [ 7 erased --)[ Eve -----)

    A version table that is suspended does not read these changes one by one: resumed, it compares
    its versions with the rows that are left.
#}
{% macro _check_unread(place, only, problems) %}
    {% set log = dbt_history._commit_log(dbt_history._with_format(place.relation), '') or {} %}
    {% set watermarks = (log.get('watermarks') or {}) if place.is_log
        or (place.columns and not dbt_history._is_suspended(log)) else {} %}
    {% for source in dbt_history._tables_read(watermarks)
        if source.newest > source.watermark.version
            and dbt_history._may_be_read(source.relation, log, place.relation) %}
        {% set unread = dbt_history._unread_changes(place, source, only) %}
        {% do problems.append(
            place.name ~ ': it has not read ' ~ unread ~ ': '
                ~ ('resume_history, and ' if dbt_history._is_suspended(log) else '')
                ~ 'run it first'
        ) if unread %}
    {% endfor %}
{% endmacro %}


{#
    The changes of a key that a table has not read, as text; none if there are none. Without the
    columns of the key all changes count for a version table, whose SELECT may have renamed them;
    they cannot be counted across a change of the columns, and for a log not under another name of
    the key. A feed that is off, or of a table that was made again, is not read: the next run finds
    a difference from the newest rows of the table, which are erased.
#}
{% macro _unread_changes(place, source, only) %}
    {% set name, watermark, newest = source.name, source.watermark, source.newest %}
    {% set part = {'from': watermark.version + 1, 'to': newest} %}
    {% set columns = dbt_history._table_columns(source.relation) %}
    {% set has_key = not dbt_history._missing_columns(only.keys(), columns)
        and (place.is_log or not dbt_history._key_problems(only, columns)) %}
    {% set problem = dbt_history._feed_problem({'table': name}, part) %}
    {% if (has_key or not place.is_log) and problem is none %}
        {% set number = run_query(
            'select count(*) from ' ~ dbt_history._table_changes({'table': name}, part)
                ~ ' as feed where ' ~ dbt_history._brings_data_back(place, columns)
                ~ (' and ' ~ dbt_history._rows_of_subject(only, columns) if has_key else '')
        ).rows[0][0] | int %}
        {% set of_key = ' changes of this key in ' if has_key
            else ' changes, which may be of this key, in ' %}
        {% do return(
            number ~ of_key ~ name ~ ', and would '
                ~ ('record the values before them' if place.is_log else 'write their values')
                if number else none
        ) %}
    {% endif %}
    {% set altered = [] %}
    {% for entry in (dbt_history._history_entries(source.relation) if problem is none else [])
        if entry.version > watermark.version and dbt_history._changes_schema(entry)
            and 'TBLPROPERTIES' not in entry.operation %}
        {% do altered.append(entry.version) %}
    {% endfor %}
    {% set detail = run_query('describe detail ' ~ name).rows[0] %}
    {% set has_feed = dbt_history._as_mapping(detail['properties']).get(
        'delta.enableChangeDataFeed'
    ) | string | lower == 'true' %}
    {% set is_read = has_feed and watermark.get('table_id') in [none, detail['id']] %}
    {% do return(
        'the versions ' ~ part['from'] ~ ' to ' ~ newest ~ ' of ' ~ name
            ~ ', and may record values of this key' if is_read and (problem or altered) else none
    ) %}
{% endmacro %}


{#
    Whether a row of the feed has data that the table would store. Where the source has all columns
    that are erased, one of them has a value: a source that was erased, too, has none left.
#}
{% macro _brings_data_back(place, columns) %}
    {% if place.is_log %}
        {% do return("_change_type in ('update_preimage', 'delete')") %}
    {% endif %}
    {% set names = place.columns | map(attribute='name') | list %}
    {% set there = columns | map(attribute='name') | list %}
    {% set cells = [] %}
    {% for name in dbt_history._names_in_both(names, there) %}
        {% do cells.append(dbt_history._quote(name) ~ ' is not null') %}
    {% endfor %}
    {% set is_new = "_change_type in ('insert', 'update_postimage')" %}
    {% do return(
        is_new ~ ' and (' ~ cells | join(' or ') ~ ')' if cells | length == names | length
            else is_new
    ) %}
{% endmacro %}


{#
    A run that is killed may leave a copy of its batch, `<model>__batches_<id>`; a run in progress
    has one, and would write the data again. Temporary views, which SHOW TABLES lists in every
    schema, end with their session.
#}
{% macro _check_copies(main, places, only, problems) %}
    {% set schemas = {} %}
    {% for place in places %}
        {% set node = dbt_history._node_of_relation(place.relation) or {} %}
        {% do schemas.setdefault(dbt_history._quote(place.relation.schema), ['rewind']).extend(
            [place.relation.identifier | lower, (node.get('name') or '') | lower]
        ) %}
    {% endfor %}
    {% for schema, names in schemas.items() %}
        {% for row in run_query('show tables in ' ~ schema).rows
            if not row['isTemporary']
                and modules.re.match('^.*__batches_[0-9a-f]{8}$', row['tableName'])
                and row['tableName'].rsplit('__batches_', 1)[0] | lower in names %}
            {% set copy = schema ~ '.' ~ dbt_history._quote(row['tableName']) %}
            {% set columns = dbt_history._table_columns(copy) %}
            {% if not dbt_history._missing_columns(main.key, columns) %}
                {% set number = run_query(
                    'select count(*) from ' ~ copy ~ ' where '
                        ~ dbt_history._rows_of_subject(only, columns)
                ).rows[0][0] | int %}
                {% do problems.append(
                    copy ~ ' has ' ~ number ~ ' rows of this key; it is the copy of a batch: wait'
                        ~ ' for the run that made it, or drop it if that run was killed'
                ) if number %}
            {% endif %}
        {% endfor %}
    {% endfor %}
{% endmacro %}


{#
    The tables with these keys that are not erased, each with what it is: those that the erased one
    is made from, and dbt's snapshots of its source or of itself.
#}
{% macro _not_erased(main, places) %}
    {% set node = main.get('node') or dbt_history._node_named(main.name, 'erase_subject') %}
    {% set own = places | map(attribute='name') | map('lower') | list %}
    {% set kinds = {} %}
    {% set sources = [dbt_history._quoted_relation(main.relation) | lower]
        + dbt_history._sources_of(main.relation, node).names %}
    {% for snapshot in graph.nodes.values() if snapshot.resource_type == 'snapshot'
        and dbt_history._sources_by_lineage(snapshot).names | select('in', sources) | list %}
        {% do kinds.update({
            snapshot.schema ~ '.' ~ snapshot.alias: 'a snapshot of the same rows',
        }) %}
    {% endfor %}
    {% for name in dbt_history._upstream_tables(node) %}
        {% do kinds.update({name: 'which ' ~ main.name ~ ' is made from'}) %}
    {% endfor %}
    {% set found = [] %}
    {% for name, kind in kinds.items() %}
        {% set relation = dbt_history._mirror_relation(name, 'erase_subject') %}
        {% if relation is not none and not relation.is_view
            and dbt_history._quoted_relation(relation) | lower not in own %}
            {% set columns = dbt_history._table_columns(relation) %}
            {% do found.append(name ~ ', ' ~ kind)
                if not dbt_history._missing_columns(main.key, columns) %}
        {% endif %}
    {% endfor %}
    {% do return(found | sort) %}
{% endmacro %}


{#
    The columns to erase, in lower case, with their names in the main table of a mirror: those
    named, else all of the named table except the key and what is kept. `only` must name a whole
    key.
#}
{% macro _erased_columns(table, there, only, columns, problems) %}
    {% set key = table.key | map('lower') | list %}
    {% set kept = key + table.kept %}
    {% set columns = [columns] if columns is string else columns %}
    {% set named = only.keys() | map('lower') | list %}
    {% for name in table.key if name | lower not in named %}
        {% do problems.append('only does not name the key column ' ~ name) %}
    {% endfor %}
    {% for name, value in only.items() %}
        {% do problems.append(name ~ ' is not a key column') if name | lower not in key %}
        {% do problems.append('only: ' ~ name ~ ' has no value') if value is none %}
    {% endfor %}
    {% if columns is not none and (columns is mapping or columns is not sequence or not columns) %}
        {% do problems.append(
            'columns is ' ~ columns ~ ': expected a name, a list of names, or nothing for all'
        ) %}
        {% set columns = [] %}
    {% endif %}
    {% set names = there | map(attribute='name') | map('lower') | list %}
    {% for name in columns or [] %}
        {% if name | string | lower in kept %}
            {% do problems.append(
                name ~ (' belongs to the log itself' if table.is_log and name | lower not in key
                    else ' belongs to the key or the period')
            ) %}
        {% elif name | string | lower not in names %}
            {% do problems.append(table.name ~ ' has no column ' ~ name) %}
        {% endif %}
    {% endfor %}
    {% set erased = [] %}
    {% for name in (columns if columns is not none else names | reject('in', kept) | list) %}
        {% do erased.append(
            dbt_history._main_name(name | string | lower, table.get('reserved', []))
        ) %}
    {% endfor %}
    {% do return(erased) %}
{% endmacro %}


{% macro _mirror_relation(mirror, caller_name) %}
    {% set node = dbt_history._node_named(mirror, caller_name) %}
    {% set parts = [node.schema, node.alias] if node else (mirror | string).split('.') %}
    {% if parts | length != 2 %}
        {% do return(none) %}
    {% endif %}
    {% do return(load_relation(
        api.Relation.create(
            database=node.database if node else none, schema=parts[0], identifier=parts[1],
        )
    )) %}
{% endmacro %}


{#
    The rows of the subject in a table with these columns, as a predicate. In a log of writes a row
    without a branch is a write on main.
#}
{% macro _rows_of_subject(only, columns) %}
    {% set names = columns | map(attribute='name') | map('lower') | list %}
    {% set rest, terms = {}, [] %}
    {% for name, value in only.items() %}
        {% if name | lower == 'branch' and value == 'main'
            and dbt_history._is_log_of_writes(names) %}
            {% do terms.append("(`branch` = 'main' or `branch` is null)") %}
        {% else %}
            {% do rest.update({name: value}) %}
        {% endif %}
    {% endfor %}
    {% do return(([dbt_history._key_filter(rest, columns)] + terms) | join(' and ')) %}
{% endmacro %}


{# Counts the subject's rows in one table, and checks whether the table would refuse the update. #}
{% macro _check_place(place, only, problems) %}
    {% set cells = [] %}
    {% for column in place.columns %}
        {% do cells.append(dbt_history._quote(column.name) ~ ' is not null') %}
    {% endfor %}
    {% set filter = ' where ' ~ dbt_history._rows_of_subject(only, place.there) %}
    {% set row = run_query(
        'select count(*), count_if(' ~ (cells | join(' or ') or 'false') ~ ') from ' ~ place.name
            ~ filter
    ).rows[0] %}
    {% do place.update({
        'rows': row[0] | int, 'changed': row[1] | int,
        'lock': dbt_history._log_lock(place.relation),
    }) %}
    {% if place.changed %}
        {% for name in dbt_history._not_null_in(place.name, place.columns) %}
            {% do problems.append(
                place.name ~ ': ' ~ name ~ ' is NOT NULL; alter table ' ~ place.name
                    ~ ' alter column ' ~ dbt_history._quote(name) ~ ' drop not null'
            ) %}
        {% endfor %}
        {% for name, condition in dbt_history._table_properties(place.relation).items()
            if name.startswith('delta.constraints.') %}
            {% set broken = run_query(
                'select count(*) from (select ' ~ dbt_history._cells_without(place) | join(', ')
                    ~ ' from ' ~ place.name ~ filter
                ~ ') as erased where not coalesce((' ~ condition ~ '), false)'
            ).rows[0][0] | int %}
            {% if broken %}
                {% do problems.append(
                    place.name ~ ': the constraint ' ~ name[18:] ~ ' (' ~ condition
                        ~ ') would refuse ' ~ broken ~ ' rows'
                ) %}
            {% endif %}
        {% endfor %}
        {% do dbt_history._check_computed_columns(place, filter, problems) %}
    {% endif %}
{% endmacro %}


{#
    Columns that Delta fills itself: it refuses an UPDATE that names an identity column, or that
    sets a generated column to another value than its expression has in the updated row.

        generated as   upper(v)                     coalesce(v, 'x')
        v, erased      NULL: can be erased, too     'x': refused
        v, kept        refused                      refused
#}
{% macro _check_computed_columns(place, filter, problems) %}
    {% set gone = place.columns | map(attribute='name') | map('lower') | list %}
    {% for field in dbt_history._stored_fields(dbt_history._with_format(place.relation))
        if field.name | lower in gone %}
        {% set expression = field.metadata.get('delta.generationExpression') %}
        {% set broken = run_query(
            'select count(*) from (select ' ~ dbt_history._cells_without(place) | join(', ')
                ~ ' from ' ~ place.name ~ filter
            ~ ') as erased where (' ~ expression ~ ') is not null'
        ).rows[0][0] | int if expression is not none else 0 %}
        {% set kind = 'an identity column, which cannot be updated'
            if dbt_history._is_identity(field)
            else 'generated (' ~ expression ~ '), and would not be NULL in ' ~ broken ~ ' rows'
                if broken else none %}
        {% do problems.append(
            place.name ~ ': ' ~ field.name ~ ' is ' ~ kind ~ ': name the columns to erase, without'
                ~ ' it (columns)'
        ) if kind is not none %}
    {% endfor %}
{% endmacro %}


{# The columns of a table as they are after the erasure. #}
{% macro _cells_without(place) %}
    {% set gone = place.columns | map(attribute='name') | list %}
    {% set cells = [] %}
    {% for column in place.there %}
        {% set name = dbt_history._quote(column.name) %}
        {% do cells.append(
            'cast(null as ' ~ dbt_history._ddl_type(column.type) ~ ') as ' ~ name
                if column.name in gone else name
        ) %}
    {% endfor %}
    {% do return(cells) %}
{% endmacro %}


{#
    One update of the rows that still hold a value. A log is locked by delta.appendOnly: the lock is
    removed for this statement and set again afterwards, whatever happens, also if a killed run had
    left it off. If another run sets it in between, the statement is tried again.
#}
{% macro _erase_place(place, only) %}
    {% set state = namespace(failed=none) %}
    {% if place.changed %}
        {% set assignments, terms = [], [] %}
        {% for column in place.columns %}
            {% do assignments.append(dbt_history._quote(column.name) ~ ' = null') %}
            {% do terms.append(dbt_history._quote(column.name) ~ ' is not null') %}
        {% endfor %}
        {% set update = 'update ' ~ place.name ~ ' set ' ~ assignments | join(', ') ~ ' where '
            ~ dbt_history._rows_of_subject(only, place.there)
            ~ ' and (' ~ terms | join(' or ') ~ ')' %}
        {% set state.failed = 'conflict' %}
        {% for attempt in range(6) if state.failed in ['conflict', 'locked'] %}
            {% do dbt_history._open_log(place.name) if place.lock is not none %}
            {% set state.failed = dbt_history._recorded_statement(
                place.relation, update, {'history_operation': 'erase_subject'},
            ) %}
        {% endfor %}
    {% endif %}
    {% if place.lock == 'open' or (place.lock and place.changed) %}
        {% do dbt_history._close_log(place.name) %}
    {% endif %}
    {% if state.failed is not none %}
        {% set reason = dbt_history._failure_reason(
            state.failed, 'erasure', 'run it again',
            {'locked': ['other runs locked the log six times during the erasure', 'run it again']},
        ) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'erase_subject', place.name ~ ' could not be changed; what was logged before is erased',
            got=reason[0], way_out=reason[1],
        )) %}
    {% endif %}
{% endmacro %}


{#
    Identifies a subject in the marks. The hash is salted with the invocation's id, so that it
    cannot be looked up from a list of keys. A day or a time of `--args` is no JSON.
#}
{% macro _subject_hash(only, salt) %}
    {% set values = {} %}
    {% for name, value in only.items() %}
        {% set is_json = value is string or value is number or value is boolean %}
        {% do values.update({name: value if is_json else value | string}) %}
    {% endfor %}
    {% do return(local_md5(tojson(values, sort_keys=true) ~ salt)) %}
{% endmacro %}


{# Whether the marks contain the erasure of this subject. #}
{% macro _has_erasure(table, only) %}
    {% set marks = dbt_history._marks(table.relation) %}
    {% if marks is none %}
        {% do return(false) %}
    {% endif %}
    {% set found = run_query(
        'select name, invocation_id from ' ~ dbt_history._quoted_relation(marks)
            ~ " where kind = 'erasure' and table_name = "
        ~ dbt_history._string_literal(table.relation.identifier | lower)
    ).rows %}
    {% for row in found if row[0] == dbt_history._subject_hash(only, row[1]) %}
        {% do return(true) %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}
