{#
    The main table and its log: {'name', 'relation', 'log'}; what prevents finding them is appended
    to `problems`.
#}
{% macro _reverted_table(main, history, problems) %}
    {% set relation = dbt_history._source_named(main) or dbt_history._mirror_relation(
        main, 'revert_table',
    ) %}
    {% if relation is none %}
        {% do problems.append('there is no such table') %}
        {% do return({}) %}
    {% endif %}
    {% set relation = dbt_history._with_format(relation) %}
    {% set node = dbt_history._node_of_relation(relation) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% if relation.is_view or relation.is_iceberg
        or run_query('describe detail ' ~ name).rows[0]['format'] | lower != 'delta' %}
        {% do problems.append('it is not a Delta table') %}
    {% elif node is not none and (
        node.config.get('materialized') in ['history', 'history_batch', 'history_append', 'view']
    ) %}
        {% do problems.append('it is a history table itself: rewind restores an earlier state') %}
    {% endif %}
    {% set logs = dbt_history._logs_of_main(name | lower, history, problems) %}
    {% do return({'name': name, 'relation': relation, 'log': logs[0] if logs else none}) %}
{% endmacro %}


{# A source of the project by `source.table`; none if it does not exist. #}
{% macro _source_named(name) %}
    {% set found = namespace(relation=none) %}
    {% for source in (graph.get('sources') or {}).values()
        if name == source.source_name ~ '.' ~ source.name %}
        {% set found.relation = load_relation(api.Relation.create(
            database=none, schema=source.schema, identifier=source.identifier,
        )) %}
    {% endfor %}
    {% do return(found.relation) %}
{% endmacro %}


{# The log named by `history`, else the only mirror or, without one, the only event table. #}
{% macro _logs_of_main(source, history, problems) %}
    {% set found = {'hx': [], 'events': []} %}
    {% for name in ([history] if history else dbt_history._named_logs()) %}
        {% set relation = dbt_history._mirror_relation(name, 'revert_table') %}
        {% set recorded = dbt_history._recorded_log(relation) if relation is not none else none %}
        {% if recorded is not none and source in recorded.sources %}
            {% set table = dbt_history._log_as_table(
                name, dbt_history._node_named(name, 'revert_table'), relation, recorded,
            ) %}
            {% do found[recorded.kind].append(dict(table, source=source)) %}
        {% endif %}
    {% endfor %}
    {% set logs = found.hx or found.events %}
    {% if not logs %}
        {% do problems.append(
            (history ~ ' is no mirror or event table of it') if history
                else 'the project has no mirror or event table of it'
        ) %}
    {% elif logs | length > 1 %}
        {% do problems.append(
            'the project has several: ' ~ logs | map(attribute='name') | join(', ')
                ~ '; say which one (history)'
        ) %}
    {% endif %}
    {% do return(logs) %}
{% endmacro %}


{% macro _refuse_revert(main, problems) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'revert_table', main ~ ' cannot be reverted; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            expected='a Delta table whose mirror or event table has read all its commits and knows'
                ~ ' the instant',
        )) %}
    {% endif %}
{% endmacro %}


{#
    What the log cannot know, and what the main table would refuse. Sets `version`, a version of the
    main table with the rows that the log has read, `columns`, what is written back, and `erased`.
    `version` is the newest one: VACUUM may have removed files of the one that was read.

        main table    7               8           9
                      read by log     optimize    vacuum
                                                  version
#}
{% macro _check_revert(call, problems) %}
    {% set table = call.log %}
    {% set watermark = table.log.watermarks.get(table.source) %}
    {% set detail = run_query('describe detail ' ~ call.name).rows[0] %}
    {% set properties = dbt_history._as_mapping(detail['properties']) %}
    {# Before the question what is unread, so that a commit in between is found by it. #}
    {% set newest = dbt_history._history_entries(call.relation, 1) | first %}
    {% do call.update({'version': newest.version}) %}
    {% if (properties.get('delta.appendOnly') or 'false') | lower == 'true' %}
        {% do problems.append('its table property delta.appendOnly forbids changes') %}
    {% endif %}
    {% if table.log.is_suspended %}
        {% do problems.append(table.name ~ ' is suspended: resume_history, then run it') %}
    {% endif %}
    {% set unread = dbt_history._unread_commits(table) %}
    {% if watermark.get('table_id') != detail['id'] %}
        {% do problems.append(
            'it was dropped and made again since ' ~ table.name ~ ' read it: run ' ~ table.name
        ) %}
    {% elif unread is not none %}
        {% do problems.append(table.name ~ ' has not read ' ~ unread ~ ': run it') %}
    {% endif %}
    {% for reason in dbt_history._unknown_at(table, call.instant) %}
        {% do problems.append(table.name ~ ': ' ~ reason) %}
    {% endfor %}
    {% for row in run_query(dbt_history.test_is_append_only(table.relation)).rows %}
        {% do problems.append(table.name ~ ' was changed: ' ~ row[0]) %}
    {% endfor %}
    {% do call.update({'erased': dbt_history._may_be_erased(table.relation)}) %}
    {% do dbt_history._check_reverted_columns(call, problems) %}
    {% do dbt_history._check_identity_columns(
        call, dbt_history._stored_fields(call.relation), problems,
    ) %}
{% endmacro %}


{#
    A column that the log lacks, or of another type, cannot be written back. `mod_time` and
    `mod_user` of the main table itself are not in a mirror and keep their values.
#}
{% macro _check_reverted_columns(call, problems) %}
    {% set table = call.log %}
    {% set ignored = ['mod_time', 'mod_user'] if table.log.kind == 'hx' else [] %}
    {% set held = dbt_history._types_of_query(
        'select * from ' ~ dbt_history._main_rows(table, 'now') ~ ' as main'
    ) %}
    {% set types = {} %}
    {% for name, type in held.items() %}{% do types.update({name | lower: type}) %}{% endfor %}
    {% set columns = [] %}
    {% for column in dbt_history._table_columns(call.relation)
        if column.name | lower not in ignored %}
        {% set type = types.pop(column.name | lower, none) %}
        {% if type is none %}
            {% do problems.append(table.name ~ ' has no column ' ~ column.name) %}
        {% elif not dbt_history._type_fits(type, column.type) %}
            {% do problems.append(
                'column ' ~ column.name ~ ' is ' ~ column.type ~ ', in ' ~ table.name ~ ' '
                    ~ type
            ) %}
        {% elif not dbt_history._is_comparable(column.type) and 'map<' not in column.type %}
            {% do problems.append('column ' ~ column.name ~ ' is a variant') %}
        {% endif %}
        {% do columns.append(column) %}
    {% endfor %}
    {% set names = columns | map(attribute='name') | map('lower') | list %}
    {% for name in table.key if name | lower not in names %}
        {% do problems.append('it has no key column ' ~ name) %}
    {% endfor %}
    {% do call.update({'columns': columns, 'dropped': types.keys() | list}) %}
{% endmacro %}


{#
    Delta refuses every UPDATE that names an identity column, also with the same value, and of one
    that is generated always the INSERT, too. Sets `identity`, `always` (those generated always) and
    `assigned` (all others).

        id bigint generated by default as identity    identity
        id bigint generated always as identity        identity, always
        v string                                      assigned
#}
{% macro _check_identity_columns(call, fields, problems) %}
    {% set by_default = {} %}
    {% for field in fields if dbt_history._is_identity(field) %}
        {% do by_default.update({
            field.name | lower: field.metadata.get('delta.identity.allowExplicitInsert') == true,
        }) %}
    {% endfor %}
    {% set identity, always, assigned = [], [], [] %}
    {% for column in call.columns %}
        {% set is_by_default = by_default.get(column.name | lower) %}
        {% do (assigned if is_by_default is none else identity).append(column) %}
        {% do always.append(column) if is_by_default == false %}
    {% endfor %}
    {% if not assigned %}
        {% do problems.append('it has only identity columns, which cannot be updated') %}
    {% endif %}
    {% do call.update({'identity': identity, 'always': always, 'assigned': assigned}) %}
{% endmacro %}


{# The columns of a side of the comparison, prefixed: `c_` for the state then, `n_` for now. #}
{% macro _side_cells(columns, prefix) %}
    {% set cells = [] %}
    {% for column in columns %}
        {% do cells.append(
            'cast(' ~ dbt_history._quote(column.name) ~ ' as '
                ~ dbt_history._ddl_type(column.type) ~ ') as '
                ~ dbt_history._quote(prefix ~ column.name)
        ) %}
    {% endfor %}
    {% do return(cells | join(', ')) %}
{% endmacro %}


{# Null-safe equality of cells with those of a plan (`n_`). #}
{% macro _same_cells(columns, left, prefix, right) %}
    {% set terms = [] %}
    {% for column in columns %}
        {% do terms.append(
            dbt_history._comparable(
                left ~ dbt_history._quote(prefix ~ column.name), column.type,
            ) ~ ' <=> ' ~ dbt_history._comparable(
                right ~ dbt_history._quote('n_' ~ column.name), column.type,
            )
        ) %}
    {% endfor %}
    {% do return('(' ~ terms | join(' and ') ~ ')') %}
{% endmacro %}


{% macro _key_of_revert(call) %}
    {% set names = call.log.key | map('lower') | list %}
    {% set key = [] %}
    {% for column in call.columns if column.name | lower in names %}
        {% do key.append(column) %}
    {% endfor %}
    {% do return(key) %}
{% endmacro %}


{#
    The rows that differ between the instant and the version of the main table that the log has
    read: `op`, the row then (`c_`) and the row now (`n_`).

        then   a 1   b 1          op   update a, insert b, delete c
        now    a 2         c 1
#}
{% macro _revert_rows(call) %}
    {%- set key = dbt_history._key_of_revert(call) -%}
    {%- set sql -%}
(
    select
        case
            when was.`__is_there` is null then 'delete'
            when is_now.`__is_there` is null then 'insert'
            else 'update'
        end as `__op`,
        was.* except (`__is_there`),
        is_now.* except (`__is_there`)
    from (
        select true as `__is_there`, {{ dbt_history._side_cells(call.columns, 'c_') }}
        from {{ dbt_history._main_rows(call.log, call.instant) }} as main
    ) as was
    full join (
        select true as `__is_there`, {{ dbt_history._side_cells(call.columns, 'n_') }}
        from {{ call.name }} version as of {{ call.version }}
    ) as is_now
        on {{ dbt_history._same_cells(key, 'was.', 'c_', 'is_now.') }}
    where was.`__is_there` is null or is_now.`__is_there` is null
        or not {{ dbt_history._same_cells(call.columns, 'was.', 'c_', 'is_now.') }}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The number of rows per kind of change. Refuses what only the rows show: a history that differs
    from the main table now (also by several rows of one key), a column that the history has no
    value of or that the main table no longer has, values of identity columns that cannot be
    written, and NULLs that an erasure may have left.
#}
{% macro _planned_revert(call, problems) %}
    {% set table = call.log %}
    {% for text in dbt_history._differs_from(
        table, call.relation.schema ~ '.' ~ call.relation.identifier,
    ) %}
        {% do problems.append(table.name ~ ' differs from it now: ' ~ text) %}
    {% endfor %}
    {% do dbt_history._check_reverted_values(call, problems) %}
    {% set counts, nulls = {}, [] %}
    {% for column in call.columns
        if column.name | lower not in table.key | map('lower') | list %}
        {% do nulls.append(
            dbt_history._quote('c_' ~ column.name) ~ ' is null and ('
                ~ dbt_history._quote('n_' ~ column.name) ~ " is not null or `__op` = 'insert')"
        ) %}
    {% endfor %}
    {% for row in run_query(
        "select `__op`, count(*), count_if(`__op` <> 'delete' and ("
            ~ (nulls | join(' or ') or 'false') ~ ')), ' ~ dbt_history._changed_identities(call)
        ~ ' from ' ~ dbt_history._revert_rows(call) ~ ' as plan group by `__op`'
    ).rows %}
        {% do counts.update({row[0]: row[1] | int}) %}
        {% do dbt_history._check_written_identities(call, row[0], row[1], row[3] | int, problems) %}
        {% if call.erased and row[2] | int %}
            {% do problems.append(
                row[2] ~ ' rows (' ~ row[0] ~ ') would be written with NULLs, which erase_subject'
                    ~ ' may have left in ' ~ table.name
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(counts) %}
{% endmacro %}


{# SQL: the number of rows of a plan where an identity column has another value now. #}
{% macro _changed_identities(call) %}
    {% if not call.identity %}{% do return('0') %}{% endif %}
    {% do return(
        "count_if(`__op` = 'update' and not "
            ~ dbt_history._same_cells(call.identity, 'plan.', 'c_', 'plan.') ~ ')'
    ) %}
{% endmacro %}


{# Values of identity columns that Delta refuses, of the rows of one kind of change. #}
{% macro _check_written_identities(call, op, rows, changed, problems) %}
    {% if changed %}
        {% do problems.append(
            changed ~ ' rows (update) have another value of '
                ~ call.identity | map(attribute='name') | join(', ')
                ~ ' now, and an identity column cannot be updated: copy the table into one where it'
                ~ ' is a plain number'
        ) %}
    {% endif %}
    {% if op == 'insert' and call.always %}
        {% do problems.append(
            rows ~ ' rows (insert) would need their former values of '
                ~ call.always | map(attribute='name') | join(', ')
                ~ ', which is generated always as identity: copy the table into one where it is'
                ~ ' generated by default, and alter column sync identity'
        ) %}
    {% endif %}
{% endmacro %}


{#
    A column without any value up to the instant may not have existed then; one that the main table
    no longer has cannot take its values back.
#}
{% macro _check_reverted_values(call, problems) %}
    {% set table = call.log %}
    {% set rows_then = dbt_history._quoted_relation(table.relation) ~ ' where '
        ~ dbt_history._time_of_log(table.log) ~ ' <= '
        ~ dbt_history._literal(call.instant, table.convention) %}
    {% set cells, names = ['count(*)'], [] %}
    {% for column in call.columns %}
        {% do names.append(column.name) %}
        {% do cells.append('count(' ~ dbt_history._renamed_cell(table.log, column.name) ~ ')') %}
    {% endfor %}
    {% set then = run_query('select ' ~ cells | join(', ') ~ ' from ' ~ rows_then).rows[0] %}
    {% set cells = ['count(*)'] %}
    {% for name in names %}
        {% do cells.append('count(' ~ dbt_history._quote(name) ~ ')') %}
    {% endfor %}
    {% set is_now = run_query('select ' ~ cells | join(', ') ~ ' from ' ~ call.name).rows[0] %}
    {% for name in names %}
        {% if then[0] | int and not then[loop.index] | int and is_now[loop.index] | int %}
            {% do problems.append(
                'column ' ~ name ~ ' has no value in ' ~ table.name ~ ' up to ' ~ call.instant
                    ~ ': it may not have existed then'
            ) %}
        {% endif %}
    {% endfor %}
    {% for name in call.dropped %}
        {% set lost = run_query(
            'select count(' ~ dbt_history._quote(name) ~ ') from '
                ~ dbt_history._main_rows(table, call.instant) ~ ' as main'
        ).rows[0][0] | int %}
        {% if lost %}
            {% do problems.append(
                'it has no column ' ~ name ~ ' any more, which had ' ~ lost ~ ' values'
            ) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{# SQL: an error, as a value of the column. #}
{% macro _changed_meanwhile(column) %}
    {% do return(
        "cast(raise_error('dbt_history: the main table was changed meanwhile') as "
            ~ dbt_history._ddl_type(column.type) ~ ')'
    ) %}
{% endmacro %}


{#
    One MERGE. Rows that another writer changed after the check make it fail: such a row no longer
    equals the version that was compared. With a column that is generated always, the plan has no
    row to insert.
#}
{% macro _write_revert(call, author, reason) %}
    {% set key = dbt_history._key_of_revert(call) %}
    {% set on = [] %}
    {% for column in key %}
        {% do on.append(
            'main.' ~ dbt_history._quote(column.name) ~ ' <=> coalesce(plan.'
                ~ dbt_history._quote('c_' ~ column.name) ~ ', plan.'
                ~ dbt_history._quote('n_' ~ column.name) ~ ')'
        ) %}
    {% endfor %}
    {% set names, values, assignments, assigned = [], [], [], [] %}
    {% for column in call.columns %}
        {% set name, value = dbt_history._quote(column.name),
            'plan.' ~ dbt_history._quote('c_' ~ column.name) %}
        {% do names.append(name) %}
        {% do values.append(value) %}
        {% if column in call.assigned %}
            {% do assigned.append(name) %}
            {% do assignments.append(name ~ ' = ' ~ value) %}
        {% endif %}
    {% endfor %}
    {% set error = dbt_history._changed_meanwhile(call.assigned[0]) %}
    {% set statement %}
merge into {{ call.name }} as main
using {{ dbt_history._revert_rows(call) }} as plan
on {{ on | join(' and ') }}
when matched and (
    plan.`__op` = 'insert'
    or not {{ dbt_history._same_cells(call.columns, 'main.', '', 'plan.') }}
) then update set {{ assigned[0] }} = {{ error }}
when matched and plan.`__op` = 'delete' then delete
when matched then update set {{ assignments | join(', ') }}
when not matched{{ '' if call.always else " and plan.`__op` <> 'insert'" }} then insert (
    {{- assigned | join(', ') }})
    values ({{ error }}{{ ', null' * (assigned | length - 1) }})
{%- if not call.always %}
when not matched then insert ({{ names | join(', ') }}) values ({{ values | join(', ') }})
{%- endif %}
    {% endset %}
    {% set said = dict(
        {'message': 'revert to ' ~ call.instant}, **dbt_history._run_attribution()
    ) %}
    {% do said.update({'author': author}) if author %}
    {% do said.update({'message': reason}) if reason %}
    {% set failed = dbt_history._recorded_statement(call.relation, statement, dict(said, **{
        'dbt_history': '1', 'history_operation': 'revert_table', 'history': call.log.name,
        'to': call.instant, 'invocation_id': invocation_id,
    })) %}
    {% if failed is not none %}
        {% set meanwhile = [
            'another writer changed it meanwhile', 'run ' ~ call.log.name ~ ' and revert again',
        ] %}
        {% set cause = dbt_history._failure_reason(failed, 'revert', 'revert again', {
            'conflict': meanwhile, 'refused': meanwhile,
        }) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'revert_table', call.name ~ ' could not be written; it is as it was', got=cause[0],
            way_out=cause[1],
        )) %}
    {% endif %}
{% endmacro %}
