{#
    Restores the state of an earlier point, as new versions: the history is kept, and a rewind can
    itself be rewound.

        to                     now
        [ a ------)[ b ----------------    before
        [ a ------)[ b -------)[ a -----    after: the state at `to`, from now on

    dbt run-operation rewind --args '{table: [customers, orders], to: "2024-03-03"}'
    dbt run-operation rewind --args '{table: customers, to: "tag:year_end", only: {customer_id: 7}}'

    One batch per table, with the same checks and the same MERGE as any other batch. `at` is the
    point from which the restored state applies: the present, or on an axis of numbers the next
    version; one time for all tables. It must be later than every start and end that is stored, with
    `only` of that record: an earlier `at` is refused. On an axis of days the present is today
    (UTC): if a record to be rewound has a version that begins or ends today, rewind it tomorrow, or
    with `at` for tomorrow. A table that captures changes takes no `at` in the future, and what it
    captures after the rewind is later than the restored state, also where the clock of its source
    is behind. On an axis of numbers its restored state has the number after its newest one, which
    its next change may have, too, and then replaces it: it is rewound once between two changes, and
    not beside a table with greater numbers. It is refused while the table has not read changes of
    its sources, and fails if another run applies a batch meanwhile; then run it again. Numbered
    batches of a landing table that are not applied yet are not looked for, because only the model's
    SELECT tells which of them it takes: run the model first, else its next run applies them after
    the restored state. A table that is compared with its source on every run (`changes` by
    difference) will follow the source again: rewind the source, or call suspend_history afterwards.
    Feature states are rewound through their log, with a transaction at its end (`writes`, `app_id`;
    `json` names columns that hold JSON): `to` is a transaction, a tag or a time, and the next run
    of the model applies it. The states must have all writes of the features to rewind: where the
    log holds spaces of other tables, name the space with `only`. It is refused if a feature existed
    then whose state was not kept, because its space or a write had no history; of a feature that
    was also deleted without history only the log can show it, by its writes up to then.
#}
{% macro rewind(
    table, to, only=none, at=none, dry_run=false, convention=none, key=none, author=none,
    reason=none, writes=none, app_id=none, payload=none, json=[]
) %}
    {% set tables = dbt_history._maintained(table, convention, key, 'rewind') %}
    {% set said = {
        'writes': writes, 'app_id': app_id, 'payload': payload, 'json': json, 'author': author,
        'message': reason,
    } %}
    {% do dbt_history._check_rewind(tables, only, said) %}
    {% do dbt_history._rewind_points(tables, to, at, only) %}
    {% do dbt_history._refuse_unkept_states(tables, only, writes) %}
    {% set log_of_writes = namespace(
        end=dbt_history._end_of_rewound_log(tables, only, writes),
    ) %}
    {% for table in tables if table.namespace %}
        {% set log_of_writes.end = dbt_history._rewind_features(
            table, only, said, log_of_writes.end, dry_run,
        ) %}
    {% endfor %}
    {% for table in tables if not table.namespace %}
        {% set select_sql = dbt_history._rewind_sql(table, only) %}
        {% set counts = {} %}
        {% for row in run_query(
            'select _stage, count(*) from (' ~ select_sql ~ ') as batch group by _stage'
        ).rows %}
            {% do counts.update({row[0]: row[1] | int}) %}
        {% endfor %}
        {% if counts and not dry_run %}
            {% set settings = {
                'key': table.key, 'convention': table.convention, 'update_without_base': 'skip',
                'max_deleted_share': none, 'late_events': false, 'tracked': 'recorded',
                'allow_full_refresh': false, 'on_schema_change': 'ignore',
            } %}
            {% do model.update({'_last_batch_log': table.commits}) %}
            {% do dbt_history._write_batches(
                table.relation, table.relation, select_sql, settings, false, 'rewind',
            ) %}
            {% do dbt_history._add_mark(
                table, 'rewind', instant=table.to, author=author, reason=reason,
            ) %}
        {% endif %}
        {% do log(
            'dbt_history: ' ~ table.name ~ (' would be rewound' if dry_run else ' is rewound')
                ~ ' to '
                ~ table.to ~ ': '
            ~ 'records restored ' ~ counts.get('upsert', 0) ~ ', ended ' ~ counts.get('delete', 0),
            info=true
        ) %}
    {% endfor %}
{% endmacro %}
