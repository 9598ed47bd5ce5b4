{# The rules of a log that it violates: no row was changed, and ids increase with time. #}
{% macro _broken_rules_of_log(table) %}
    {% set broken = [] %}
    {% for row in run_query(dbt_history.test_is_append_only(table.relation)).rows %}
        {% do broken.append(row[0]) %}
    {% endfor %}
    {% if table.log.id %}
        {% set number = run_query(
            'select count(*) from ('
                ~ dbt_history.test_ids_increase(
                    dbt_history._quoted_relation(table.relation), table.log.id,
                )
            ~ ') as failing'
        ).rows[0][0] | int %}
        {% do broken.append(number ~ ' rows whose id does not increase with their time')
            if number %}
    {% endif %}
    {% do return(broken) %}
{% endmacro %}


{#
    What a table is compared with: {'name', 'version', 'own'}; none if with nothing. Without
    `source` a log is compared with its main table, both as they were when it had read everything.
    `own`: the log's version, read before; the main table's is read before the question what is
    unread, so that a run in between changes neither.

        main table   7            8                          9
        log          3 (7)        4 (8)                      5 (9)
        here                 own: 4     version: 8    nothing is unread
#}
{% macro _compared_with(table, entries, source) %}
    {% if source %}
        {% do return({'name': source, 'version': none, 'own': none}) %}
    {% endif %}
    {% set watermark = (table.log.watermarks if table.log else {}).get(table.source) %}
    {% set watermarks = {table.source: watermark} if watermark else {} %}
    {% set read = dbt_history._tables_read(watermarks) | first %}
    {% set main = dbt_history._comparable_main(table) %}
    {% do return(none if main is none else {
        'name': main, 'version': read.newest if read else none,
        'own': entries[0].version if entries else none,
    }) %}
{% endmacro %}


{#
    Compares as `_differs_from`. A `source` has no version that belongs to the table's, so if the
    table was written since `entries` were read, a difference counts only if it is found again.
#}
{% macro _differences(table, entries, other) %}
    {% set found = dbt_history._differs_from(table, other.name, other.own, other.version) %}
    {% if found and other.own is none and entries
        and dbt_history._history_entries(table.relation, 1)[0].version != entries[0].version %}
        {% set found = dbt_history._differs_from(table, other.name) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# The main table of a log that has read all its commits; none for any other table. #}
{% macro _comparable_main(table) %}
    {% if not table.log or not table.source or table.log.is_suspended %}
        {% do return(none) %}
    {% endif %}
    {% set main = load_relation(dbt_history._relation_of(table.source)) %}
    {% set watermark = table.log.watermarks.get(table.source) or {} %}
    {% if main is none or main.is_view or watermark.get('version') is none %}
        {% do return(none) %}
    {% endif %}
    {% set unread = dbt_history._unread_commits(table) %}
    {% if unread is not none %}
        {% do dbt_history._log_unread(table) %}
        {% do return(none) %}
    {% endif %}
    {% do return(main.schema ~ '.' ~ main.identifier) %}
{% endmacro %}


{# The rules of periods that the table violates: those of the generic tests. #}
{% macro _broken_rules(table) %}
    {% set name = dbt_history._quoted_relation(table.relation) %}
    {% set rules = {
        'versions that are not well formed': dbt_history.test_period_is_well_formed(
            name, table.key, table.convention,
        ),
        'versions that overlap': dbt_history.test_periods_do_not_overlap(
            name, table.key, table.convention,
        ),
        'records with several open versions': dbt_history.test_one_active_version(
            name, table.key, table.convention,
        ),
    } %}
    {% if table.convention.active %}
        {% set flags = dbt_history.test_active_matches_open_end(
            name, table.key, table.convention,
        ) %}
        {% do rules.update({'versions whose active flag contradicts their end': flags}) %}
    {% endif %}
    {% set broken = [] %}
    {% for rule, sql in rules.items() %}
        {% set number = run_query(
            'select count(*) from (' ~ sql ~ ') as failing'
        ).rows[0][0] | int %}
        {% if number %}
            {% do broken.append(number ~ ' ' ~ rule) %}
        {% endif %}
    {% endfor %}
    {% do return(broken) %}
{% endmacro %}


{#
    Compares the number of rows according to all commits since the table was created, emptied or
    replaced with the number of rows in the table at the newest of them; returns nothing if the log
    does not go back so far.
#}
{% macro _lost_rows(table, entries) %}
    {% set sum = namespace(rows=0, is_known=true, is_whole=false) %}
    {% for entry in entries if not sum.is_whole %}
        {% set metrics = entry.metrics %}
        {% set is_replaced = 'REPLACE TABLE' in entry.operation %}
        {% set sum.is_whole = entry.operation == 'TRUNCATE' or is_replaced
            or entry.version == 0 or entry.get('is_first', false) %}
        {% if entry.operation in ['RESTORE', 'CLONE', 'CONVERT']
            or entry.parameters.get('mode') == 'Overwrite'
            or ('REPLACE' in entry.operation and not is_replaced) %}
            {% set sum.is_known = false %}
        {% elif entry.operation == 'MERGE' %}
            {% set sum.rows = sum.rows + (metrics.get('numTargetRowsInserted', 0) | int)
                - (metrics.get('numTargetRowsDeleted', 0) | int) %}
        {% elif entry.operation == 'DELETE' %}
            {% set sum.is_known = sum.is_known and 'numDeletedRows' in metrics %}
            {% set sum.rows = sum.rows - (metrics.get('numDeletedRows', 0) | int) %}
        {% elif is_replaced or entry.operation in [
            'WRITE', 'CREATE TABLE AS SELECT', 'STREAMING UPDATE', 'COPY INTO',
        ] %}
            {% set sum.is_known = sum.is_known
                and ('numOutputRows' in metrics
                    or (is_replaced and 'REPLACE TABLE AS' not in entry.operation)) %}
            {% set sum.rows = sum.rows + (metrics.get('numOutputRows', 0) | int) %}
        {% endif %}
    {% endfor %}
    {% if not sum.is_known or not sum.is_whole %}
        {% do return([]) %}
    {% endif %}
    {% set there = run_query(
        'select count(*) from ' ~ dbt_history._at_version(table.relation, entries[0].version)
    ).rows[0][0] | int %}
    {% do return([] if there == sum.rows else [there ~ ' rows, where its log makes ' ~ sum.rows]) %}
{% endmacro %}


{#
    Commits of others that changed rows, dropped columns, or emptied or replaced the table, since
    the package manages it: a manual change of a value violates no rule and no count.

        version   0      1        2       3       4        5         6
                  WRITE  MERGE    UPDATE  MERGE   UPDATE   RESTORE   OPTIMIZE
                         batch 1  found   batch 2 undone   to 3
                  '- before the first batch: the adopted table

    What a materialization of dbt's own does to its table has no record: see `_own_changes_of_dbt`.
#}
{% macro _foreign_commits(table, entries) %}
    {% set settings = table.node.config if table.node is not none else {} %}
    {% set by_dbt = dbt_history._own_changes_of_dbt(settings) %}
    {% set walk = namespace(found=[], since_ours=[], resume_at=none) %}
    {% for entry in entries if walk.resume_at is none or entry.version <= walk.resume_at %}
        {% if entry.operation == 'RESTORE' %}
            {% set walk.resume_at = dbt_history._restored_version(entry) %}
        {% elif entry.record is not none or 'history_operation' in (entry.said or '')
            or 'history_migration' in (entry.said or '') %}
            {% set walk.found = walk.found + walk.since_ours %}
            {% set walk.since_ours = [] %}
        {% elif (entry.operation in [
            'WRITE', 'MERGE', 'UPDATE', 'DELETE', 'STREAMING UPDATE', 'COPY INTO', 'TRUNCATE',
            'CLONE', 'DROP COLUMNS', 'REPLACE COLUMNS',
        ] and entry.operation not in by_dbt)
            or ('REPLACE TABLE' in entry.operation and 'REPLACE TABLE' not in by_dbt) %}
            {% set walk.since_ours = walk.since_ours + [
                'commit ' ~ entry.version ~ ' (' ~ entry.operation ~ ', '
                    ~ (entry.user or 'unknown user') ~ ', ' ~ entry.timestamp
                    ~ (') changed columns by hand' if 'COLUMNS' in entry.operation
                        else ') changed rows by hand')
            ] %}
        {% endif %}
    {% endfor %}
    {% do return(walk.found) %}
{% endmacro %}


{# The operations by which a materialization of dbt's own changes its table; none of the others. #}
{% macro _own_changes_of_dbt(settings) %}
    {% set materialized = settings.get('materialized', 'history') %}
    {% if settings.get('incremental_strategy') == 'history_batch'
        or materialized in ['history', 'history_batch', 'history_append'] %}
        {% do return([]) %}
    {% endif %}
    {% do return(['REPLACE TABLE'] + {
        'snapshot': ['MERGE'], 'incremental': ['MERGE', 'WRITE', 'DROP COLUMNS'],
        'seed': ['WRITE', 'TRUNCATE'],
    }.get(materialized, [])) %}
{% endmacro %}


{#
    Compares the open versions with the table they mirror, by the columns that both have, and of
    structs by the fields that the other table has; each at its version, without one as it is.
#}
{% macro _differs_from(table, source, own_version=none, version=none) %}
    {% set other = dbt_history._referring({'table': source}, 'verify_history')
        ~ (' version as of ' ~ version if version is not none else '') %}
    {% set types = dbt_history._types_by_name(
        dbt_history._query_columns('select * from ' ~ other),
    ) %}
    {% set ours = dbt_history._query_columns('select * from ' ~ dbt_history._main_rows(
        table, 'now',
    ) ~ ' as main') if table.log else dbt_history._table_columns(table.relation) %}
    {% set current = dbt_history._main_rows(table, 'now', version=own_version) ~ ' as main'
        if table.log
        else dbt_history._quoted_relation(table.relation) ~ ' where '
            ~ dbt_history._is_open(table.convention) %}
    {% set names, cells, others = [], [], [] %}
    {% for column in ours if column.name | lower in types %}
        {% set name, type = dbt_history._quote(column.name), types[column.name | lower] %}
        {% set by_name = dbt_history._with_fields_of(column.type, type) %}
        {% do names.append(name) %}
        {% do cells.append(
            dbt_history._comparable(
                dbt_history._converted(name, column.type, by_name), by_name,
            ) ~ ' as ' ~ name
        ) %}
        {% do others.append(dbt_history._comparable(name, type) ~ ' as ' ~ name) %}
    {% endfor %}
    {% set row = run_query(
        'select count_if(surplus > 0), count_if(surplus < 0) from (select sum(`__side`) as surplus'
            ~ ' from (select 1 as `__side`, ' ~ cells | join(', ')
        ~ ' from ' ~ current ~ ' union all select -1 as `__side`, '
        ~ others | join(', ') ~ ' from ' ~ other ~ ') as sides group by ' ~ names | join(', ')
        ~ ') as rows'
    ).rows[0] %}
    {% do return(
        [] if row[0] | int == 0 and row[1] | int == 0
        else [
            row[0] ~ ' current versions are not in ' ~ source ~ ', ' ~ row[1]
                ~ ' rows of it are not current here'
        ]
    ) %}
{% endmacro %}
