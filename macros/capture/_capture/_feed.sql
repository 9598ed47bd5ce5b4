{# Whether files of the feed have been vacuumed; checked only where a gap can be marked. #}
{% macro _is_vacuumed(capture, part) %}
    {% set vacuums = capture.entries | selectattr('version', 'gt', part['from']) | selectattr(
        'operation', 'equalto', 'VACUUM END',
    ) | list %}
    {% do return(
        (capture.layout or {}).get('is_source', false) and vacuums | length > 0
        and not dbt_history._can_be_read(dbt_history._table_changes(capture, part))
    ) %}
{% endmacro %}


{% macro _version_taken(capture) %}
    {% do return(capture.table ~ ' version as of ' ~ capture.taken.watermark.version) %}
{% endmacro %}


{#
    Whether all rows of the feed can be read: log entries may have expired, or files may have been
    removed.
#}
{% macro _can_be_read(relation) %}
    {% set read = 'select max(length(to_json(struct(*)))) as length from ' ~ relation %}
    {% do return(dbt_history._guarded_statement(read, {}, {}) is none) %}
{% endmacro %}


{#
    Adds the parts of the feed after version `last`, each readable with one schema, to
    capture.segments. Returns the version up to which the feed cannot be read, none if all of it
    can.
#}
{% macro _plan_feed(capture, last, method) %}
    {% set head = capture.head %}
    {% if last >= head.version %}
        {% do return(none) %}
    {% endif %}
    {% set whole = {'from': last + 1, 'to': head.version} %}
    {% set problem = dbt_history._feed_problem(capture, whole) %}
    {% if problem is none and dbt_history._is_vacuumed(capture, whole) %}
        {% set problem = 'expired' %}
    {% endif %}
    {% if problem is none %}
        {% do capture.segments.append(whole) %}
        {% do return(none) %}
    {% endif %}
    {% if problem == 'expired' %}
        {% do dbt_history._refuse_expired(capture, last) %}
        {% do return(head.version) %}
    {% endif %}
    {% set state = namespace(to=head.version, unreadable=none) %}
    {% for entry in capture.entries
        if entry.version > last and entry.version <= head.version and state.unreadable is none %}
        {% if dbt_history._changes_schema(entry) or entry.version == last + 1 %}
            {% set part = {'from': entry.version, 'to': state.to} %}
            {% set problem = dbt_history._feed_problem(capture, part) %}
            {% if problem is none %}
                {% do capture.segments.insert(0, part) %}
                {% set state.to = entry.version - 1 %}
            {% elif problem in ['not null', 'type'] and entry.version < state.to %}
                {% do capture.segments.insert(0, dict(part, **{'from': entry.version + 1})) %}
                {% set state.unreadable = entry.version %}
            {% else %}
                {% set state.unreadable = state.to %}
            {% endif %}
        {% endif %}
    {% endfor %}
    {% if state.unreadable is not none and method == 'feed' %}
        {% do dbt_history._refuse_feed(
            capture,
            'the feed cannot be read up to version ' ~ state.unreadable ~ ' (' ~ problem ~ ')',
        ) %}
    {% endif %}
    {% do return(state.unreadable) %}
{% endmacro %}


{# Operations after which the feed may need another schema, or may begin. #}
{% macro _changes_schema(entry) %}
    {% set operation = entry.operation %}
    {% do return(
        operation in [
            'CHANGE COLUMN', 'CHANGE COLUMNS', 'DROP COLUMNS', 'RENAME COLUMN', 'REPLACE COLUMNS',
            'RESTORE', 'CLONE', 'UPGRADE PROTOCOL',
        ]
        or 'TABLE' in operation or 'TBLPROPERTIES' in operation
            or entry.parameters.get('mode') == 'Overwrite'
    ) %}
{% endmacro %}


{#
    Why a part of the feed cannot be read: none, 'missing' (the feed was off), 'schema', 'not null'
    or 'type' (its first commit, see `_has_nulls_where_none_may_be`, `_has_values_of_other_types`)
    or 'expired'. EXPLAIN returns a planning error as a row, so an error of Delta does not end the
    run.
#}
{% macro _feed_problem(capture, part) %}
    {% set plan = run_query(
        'explain select * from ' ~ dbt_history._table_changes(capture, part)
    ).rows | map(attribute=0) | join('\n') %}
    {% if 'Error occurred during query planning' not in plan %}
        {% do return(
            'not null' if dbt_history._has_nulls_where_none_may_be(capture, part)
            else 'type' if dbt_history._has_values_of_other_types(capture, part) else none
        ) %}
    {% elif 'DELTA_MISSING_CHANGE_DATA' in plan %}
        {% do return('missing') %}
    {% elif 'DELTA_CHANGE_DATA_FEED_INCOMPATIBLE' in plan %}
        {% do return('schema') %}
    {% endif %}
    {% do return('expired') %}
{% endmacro %}


{#
    Whether the first commit of the part makes a column NOT NULL that had a NULL before it. Spark
    cannot read the deletion of such a row with the new schema.

        version   1           2           3         4
        c         not null    nullable    a NULL    restored: not null, the NULL is deleted
        feed                  ] readable ---------] not readable
#}
{% macro _has_nulls_where_none_may_be(capture, part) %}
    {% set first = dbt_history._first_entry(capture, part) %}
    {# An overwrite, or a table made from a SELECT, has no such column. #}
    {% if not first or not modules.re.search('RESTORE|REPLACE TABLE$|CLONE', first.operation) %}
        {% do return(false) %}
    {% endif %}
    {% set at = capture.table ~ ' version as of ' %}
    {% set columns = dbt_history._query_columns('select * from ' ~ at ~ first.version) %}
    {% set after = dbt_history._not_null_in(at ~ first.version, columns) %}
    {% set before = dbt_history._not_null_in(
        at ~ (first.version - 1), columns | selectattr('name', 'in', after) | list,
    ) if after else [] %}
    {% set nulls = [] %}
    {% for name in after if name not in before %}
        {% do nulls.append(dbt_history._quote(name) ~ ' is null') %}
    {% endfor %}
    {% if not nulls %}
        {% do return(false) %}
    {% endif %}
    {% set rows = at ~ (first.version - 1) ~ ' where ' ~ nulls | join(' or ') %}
    {# A version that cannot be read any more may have had one. #}
    {% do return(
        not dbt_history._can_be_read(rows)
            or run_query('select 1 from ' ~ rows ~ ' limit 1').rows | length > 0
    ) %}
{% endmacro %}


{#
    Whether the first commit of the part gives a column another type (without column mapping, with
    which Delta refuses such a commit), so that the rows that it deletes cannot be read, or not as
    what they were: their files have the former type.

        version   1           2                 3
        v         bigint      overwritten: int  int
        feed      ] not readable ---------------] readable
#}
{% macro _has_values_of_other_types(capture, part) %}
    {% set first = dbt_history._first_entry(capture, part) %}
    {% set is_made_anew = first and (
        modules.re.search('RESTORE|REPLACE TABLE|CLONE', first.operation)
        or first.parameters.get('mode') == 'Overwrite'
    ) %}
    {% set at = capture.table ~ ' version as of ' %}
    {% set former = at ~ (part['from'] - 1) %}
    {# A version whose log has expired cannot be compared. #}
    {% if not is_made_anew or not dbt_history._can_be_read(former ~ ' limit 0') %}
        {% do return(false) %}
    {% endif %}
    {% set types = dbt_history._types_by_name(
        dbt_history._query_columns('select * from ' ~ former)
    ) %}
    {% set kept = [] %}
    {% for column in dbt_history._query_columns('select * from ' ~ at ~ part['from']) %}
        {% set type = types.get(column.name | lower, column.type) %}
        {% do kept.append(dbt_history._keeps_values(type, column.type)) if type != column.type %}
    {% endfor %}
    {% do return(
        false in kept
            or (kept != [] and not dbt_history._can_be_read(
                dbt_history._table_changes(capture, dict(part, to=part['from']))
            ))
    ) %}
{% endmacro %}


{% macro _first_entry(capture, part) %}
    {% do return(
        capture.get('entries', []) | selectattr('version', 'equalto', part['from']) | first
    ) %}
{% endmacro %}


{#
    Reads by path if the query also reads another part: Spark resolves a table name once per query,
    with one range.
#}
{% macro _table_changes(capture, part, by_path=false) %}
    {%- set range = part['from'] ~ ', ' ~ part['to'] ~ ')' -%}
    {%- if by_path -%}
        {%- set location = capture.head.location
            or run_query('describe detail ' ~ capture.table).rows[0]['location'] -%}
        {%- do return(
            'table_changes_by_path(' ~ dbt_history._string_literal(location) ~ ', ' ~ range
        ) -%}
    {%- endif -%}
    {%- do return('table_changes(' ~ dbt_history._string_literal(capture.table) ~ ', ' ~ range) -%}
{% endmacro %}
