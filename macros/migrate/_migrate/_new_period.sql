{#
    From `at` on, a column has a new value in every active version for which `changes` is true. One
    MERGE:

        at                      at
        [ a -------- open   ->  [ a ----)[ a' -------- open     started before: closed and copied
             [ b --- open   ->  [ b' --- open                   starts then: changed in place

    `later`: the rows that it refuses (`_later_rows`). `ended`: SQL, the ended versions that
    are changed in place, too (`_ended_versions`); none leaves out all of them:

             [ c --)        ->       [ c' --)                   started then, and has ended
#}
{% macro _new_period_sql(migrated, key, column, value, at, changes, later, ended=none) %}
    {%- set convention = dbt_history.convention('fivetran') -%}
    {%- set start = dbt_history._quote(convention.start) -%}
    {%- set end = dbt_history._quote(convention.end) -%}
    {%- set active = dbt_history._quote(convention.active) -%}
    {%- set is_active = active ~ ' = true and ' -%}
    {%- set kinds = [
        {'op': 'close', 'where': is_active ~ start ~ ' < ' ~ at ~ ' and ' ~ changes},
        {'op': 'add', 'where': is_active ~ start ~ ' < ' ~ at ~ ' and ' ~ changes},
        {'op': 'change', 'where': is_active ~ start ~ ' = ' ~ at ~ ' and ' ~ changes},
    ] -%}
    {%- if ended is not none -%}
        {%- do kinds.append({'op': 'change ended', 'where': ended}) -%}
    {%- endif -%}
    {%- set matched = dbt_history._key_columns(key) | map('lower') | list
        + [convention.start, convention.end] -%}
    {%- for rows in later -%}
        {%- do kinds.append({'op': 'refuse', 'where': rows.where}) -%}
    {%- endfor -%}
    merge into {{ dbt_history._quoted_relation(migrated.relation) }} as history
    using (
        {%- for kind in kinds %}
        select {{- ' distinct' if kind.op == 'change ended' }}
            '{{ kind.op }}' as op,
            {{ 'cast(null as timestamp)' if kind.op == 'add' else start }} as match_start
            {%- for name in migrated.names.values() %},
            {% if kind.op == 'add' and name | lower == column | lower %}{{ value }}
            {%- elif kind.op == 'add' and name | lower == convention.start %}{{ at }}
            {%- elif kind.op == 'change ended' and name | lower not in matched %}null
            {%- else %}{{ dbt_history._quote(name) }}
            {%- endif %} as {{ dbt_history._prefixed(name) }}
            {%- endfor %}
        from {{ dbt_history._quoted_relation(migrated.relation) }}
            {{- ' as stored' if kind.op == 'add' }}
        where {{ kind.where }}
            {%- if kind.op == 'add' %}
            and {{ dbt_history._has_no_new_column(
                'stored', migrated.names.values() | list, 'the migration',
            ) | indent(12) }}
            {%- endif %}
        {%- if not loop.last %}
        union all
        {%- endif %}
        {%- endfor %}
    ) as operations
    on
        {%- if ended is none %}
        history.{{ active }} = true
        {%- else %}
        coalesce(history.{{ active }}, false) = (operations.op <> 'change ended')
        and (
            operations.op <> 'change ended'
            or history.{{ end }} <=> operations.{{ dbt_history._prefixed(
                migrated.names[convention.end]
            ) }}
        )
        {%- endif %}
        and history.{{ start }} = operations.match_start
        {%- for name in dbt_history._key_columns(key) %}
        and history.{{ dbt_history._quote(name) }}
            <=> operations.{{ dbt_history._prefixed(migrated.names[name | lower]) }}
        {%- endfor %}
    when matched and operations.op = 'close' then update set
        {{ end }} = {{ dbt_history._shift_by_gap(at, convention) }},
        {{ active }} = false
    when matched and operations.op {{ "= 'change'" if ended is none
        else "in ('change', 'change ended')" }} then update set
        {{ dbt_history._quote(migrated.names[column | lower]) }} = {{ value }}
    when matched and operations.op = 'refuse' then update set
        {{ end }} = cast(
            raise_error('dbt_history: an active version starts after the migration') as timestamp
        )
    when not matched and operations.op = 'add' then insert (
        {%- for name in migrated.names.values() %}
        {{ dbt_history._quote(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) values (
        {%- for name in migrated.names.values() %}
        operations.{{ dbt_history._prefixed(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    -- An operation that does not match its version raises an error: nothing is committed.
    when not matched then insert ({{ end }})
    values (cast(raise_error('dbt_history: a version to change was not found') as timestamp))
{%- endmacro %}


{#
    The rows that a migration at `at` refuses: active versions that start later, and the repeats
    (`_equal_versions.sql`) of an active version that do not start before. A repeat has the values
    of the change before it, and that would be a part of the version which this makes:

        day        1      at       5
        stored     [ a ------------------- open      repeat at 5: the values of day 1
        wrong      [ a ---)[ a, new ------ open      repeat at 5: its values are now those of `at`
#}
{% macro _later_rows(migrated, key, at) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set active = dbt_history._quote(convention.active) %}
    {% set keys = dbt_history._quoted(dbt_history._key_columns(key)) | join(', ') %}
    {% set later = [{
        'what': 'active versions start after ',
        'where': active ~ ' = true and ' ~ start ~ ' > ' ~ at,
    }] %}
    {% if dbt_history._may_have_repeats(migrated.relation) %}
        {% do later.append({
            'what': 'changes of active versions (repeats) start at or after ',
            'where': active ~ ' = false and ' ~ start ~ ' >= ' ~ at ~ ' and (' ~ keys
                ~ ') in (select ' ~ keys ~ ' from '
                ~ dbt_history._quoted_relation(migrated.relation) ~ ' where ' ~ active
                ~ ' = true)',
        }) %}
    {% endif %}
    {% do return(later) %}
{% endmacro %}


{#
    SQL: the versions that start at `at` and have ended. A remembered deletion of `late_events` is
    no version, nor is a repeat: both have an empty period.
#}
{% macro _ended_versions(migrated, key, at) %}
    {% set convention = dbt_history.convention('fivetran') %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set terms = [
        start ~ ' = ' ~ at,
        'not coalesce(' ~ dbt_history._quote(convention.active) ~ ', false)',
        'not ' ~ dbt_history._is_tombstone_row(
            migrated.columns, dbt_history._key_columns(key), convention,
        ),
    ] %}
    {% if dbt_history._may_have_repeats(migrated.relation) %}
        {% do terms.append(dbt_history._quote(convention.end) ~ ' >= ' ~ start) %}
    {% endif %}
    {% do return(terms | join(' and ')) %}
{% endmacro %}


{% macro _later_row_problems(migrated, at, later) %}
    {% set start = dbt_history._quote(dbt_history.convention('fivetran').start) %}
    {% set problems = [] %}
    {% for rows in later %}
        {% set row = run_query(
            'select count(*), cast(max(' ~ start ~ ') as string) from '
                ~ dbt_history._quoted_relation(migrated.relation) ~ ' where ' ~ rows.where
        ).rows[0] %}
        {% if row[0] | int %}
            {% do problems.append(
                row[0] ~ ' ' ~ rows.what ~ at ~ ', the latest at ' ~ row[1]
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    A change that the next run reads, from before `at`, would become a late event that ends at `at`:

        source    price 5         price 6 (not read)
        at                                     at
        table     [ 5 ------------------------)[ 5, new column --
        next run  [ 5 -----------)[ 6 --------)[ 5, new column --      6 is not the current price

    Changes have the times of their commits, so commits at or after `at` do no harm. A table that is
    suspended reads after its resumption a difference with the time of the newest commit then, which
    is not before that of the newest commit now. Where changes have times of their own, all commits
    count.

    Nor does a table that captures changes take an `at` in the future. What it captures until then
    would end there if changes have times of their own, and otherwise be moved to after it
    (`_times.sql`): nobody would find it at the time when it was made.

        source    price 5          price 6 (09:30)
        now       09:00                        at: 10:00
        next run  [ 5 -------------------------)[ 5, new column )[ 6, new column --
#}
{% macro _unread_change_problems(migrated, at) %}
    {% set found = dbt_history._find_last_batch(dbt_history._history_entries(migrated.relation)) %}
    {% set log = dict(found, control=found.control
        or dbt_history._control_by_property(migrated.relation, found)) %}
    {% set problems = [] %}
    {% if log.watermarks and run_query(
        'select ' ~ at ~ ' > current_timestamp()'
    ).rows[0][0] | string | lower == 'true' %}
        {% do problems.append(
            at ~ ' is in the future, and the table captures changes until then: choose the present'
                ~ ' or an earlier point, or migrate it then'
        ) %}
    {% endif %}
    {% set is_suspended = dbt_history._is_suspended(log) %}
    {% set run = ('resume_history, and ' if is_suspended else '') ~ 'run its model first' %}
    {% for source in dbt_history._unread_sources(log, migrated.relation) %}
        {% set micros = source.newest if is_suspended else source.micros %}
        {% if micros is none or dbt_history._has_own_times(migrated.relation) %}
            {% do problems.append(
                'it has not read ' ~ source.text ~ ', which may be from before: ' ~ run
            ) %}
        {% elif micros < run_query('select unix_micros(' ~ at ~ ')').rows[0][0] | int %}
            {% do problems.append(
                'it has not read ' ~ source.text ~ ', which is from before: ' ~ run
                    ~ ', or choose at up to '
                    ~ dbt_history._axis_text(micros, dbt_history.convention('fivetran'))
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Whether the model of the table may give changes other times than those of their commits, as far
    as its text shows; of a table without a model this is not known. `at` is the fourth argument of
    `batch_rows`, after its `key` and `convention`.
#}
{% macro _has_own_times(relation) %}
    {% set node = dbt_history._node_of_relation(relation) or {} %}
    {% set meta = dbt_history._history_meta(node, 'migrate') if node else {} %}
    {% set by_name = '\\b(at|sequence)\\s*=' %}
    {% set by_place = 'batch_rows\\s*[(](?![^{}]*\\b(key|convention)\\s*=)[^{}]*,[^{}]*,[^{}]*,' %}
    {% do return(
        meta.get('updated_at') is not none
            or modules.re.search(by_name ~ '|' ~ by_place, node.get('raw_code') or '') is not none
    ) %}
{% endmacro %}
