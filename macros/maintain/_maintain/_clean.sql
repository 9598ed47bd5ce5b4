{# Refuses limits of `clean_history` that are not valid, or not for these tables; all at once. #}
{% macro _check_cutoff(tables, before, age, keep_versions, of_features) %}
    {% set problems = [] %}
    {% set counts_transactions = of_features.up_to is not none
        or of_features.keep_transactions is not none %}
    {% if before is none and age is none and keep_versions is none and not counts_transactions %}
        {% do problems.append('no limit is given') %}
    {% endif %}
    {% if age is not none
        and not modules.re.match(
            '^[0-9]+ (second|minute|hour|day|week|month|year)s?$', age | string,
        ) %}
        {% do problems.append('age is ' ~ age) %}
    {% endif %}
    {% if keep_versions is not none and (keep_versions is not number or keep_versions < 1) %}
        {% do problems.append('keep_versions is ' ~ keep_versions) %}
    {% endif %}
    {% if of_features.keep_transactions is not none
        and (of_features.keep_transactions is not number or of_features.keep_transactions < 1) %}
        {% do problems.append('keep_transactions is ' ~ of_features.keep_transactions) %}
    {% endif %}
    {% for table in tables if not table.namespace %}
        {% if age is not none and table.convention.type == 'bigint' %}
            {% do problems.append(table.name ~ ' counts versions, so its versions have no age') %}
        {% endif %}
        {% if counts_transactions %}
            {% do problems.append(
                table.name
                    ~ ' has no transactions: up_to and keep_transactions are for feature states'
            ) %}
        {% endif %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'clean_history', 'the limits are not valid; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
            expected="before: a time or version; age: such as 90 days; keep_versions: 1 or more;"
                ~ " or several of them;"
                ~ ' of feature states also up_to: a transaction; keep_transactions: 1 or more',
        )) %}
    {% endif %}
{% endmacro %}


{# The earlier of `before` and `age` as text of the axis; none if neither is given. #}
{% macro _cutoff(table, before, age) %}
    {% set points = [] %}
    {% if before is not none %}
        {% do points.append(dbt_history._literal(
            dbt_history._evaluated_point(before, table, 'clean_history', 'before'),
            table.convention,
        )) %}
    {% endif %}
    {% if age is not none %}
        {% set oldest = '(current_timestamp() - interval ' ~ age ~ ')' %}
        {% do points.append(
            dbt_history._utc_day(oldest) if table.convention.type == 'date'
                else oldest
        ) %}
    {% endif %}
    {% if not points %}
        {% do return(none) %}
    {% endif %}
    {% set cutoff = points[0] if points | length == 1 else 'least(' ~ points | join(', ') ~ ')' %}
    {% do return(dbt_history._axis_text(
        run_query('select ' ~ dbt_history._axis_number(cutoff, table.convention)).rows[0][0],
        table.convention
    )) %}
{% endmacro %}


{#
    Counts the versions that would be removed, and computes the resulting retention horizon. Empty
    versions are never visible and are not counted.
#}
{% macro _plan_cleaning(table, limit) %}
    {% set marks = dbt_history._marks_of(table) %}
    {% set sql %}
        select
            count(*) as versions,
            count_if(may_go and is_seen) as dropped,
            max(if(may_go and is_seen, until, null)) as until
        from (
            select
                {{ dbt_history._is_not_empty(table.convention) }} as is_seen,
                {{ dbt_history._axis_number(
                    dbt_history._end_of_period(table.convention), table.convention,
                ) }} as until,
                {{ dbt_history._may_go(table, limit, marks.tags) }} as may_go
            from {{ dbt_history._ranked_versions(table, limit) }} as history
        ) as versions
    {% endset %}
    {% set row = run_query(sql).rows[0] %}
    {% do return({
        'versions': row[0] | int, 'dropped': row[1] | int,
        'tags': marks.tags | map(attribute='name') | unique | list | length,
        'retention_horizon': dbt_history._new_retention_horizon(
            dbt_history._axis_text(row[2], table.convention), limit, marks,
        ),
    }) %}
{% endmacro %}


{#
    The greatest end of the versions to remove; for feature states the last transaction that is
    cleaned, even if nothing ended there. None if there is nothing to do.
#}
{% macro _new_retention_horizon(greatest_end, limit, marks) %}
    {% if limit.get('last') is none
        or greatest_end is not none and limit.last < greatest_end | int %}
        {% do return(greatest_end) %}
    {% endif %}
    {% do return(
        limit.last | string
            if limit.last > [marks.retention_horizon or 0, 0] | max or greatest_end is not none
            else none
    ) %}
{% endmacro %}


{#
    For feature states: the last transaction whose closed states are removed; none if no limit is a
    transaction.
#}
{% macro _last_to_clean(table, limit) %}
    {% if not table.namespace
        or (limit.up_to is none and limit.keep_transactions is none and limit.age is none) %}
        {% do return(none) %}
    {% endif %}
    {% set states = dbt_history._quoted_relation(table.relation) %}
    {% set points = [] %}
    {% set held = [] %}
    {% if limit.up_to is not none %}
        {% set point = dbt_history._evaluated_point(
            limit.up_to, table, 'clean_history', 'up_to',
        ) | int %}
        {% set head = dbt_history._head_of_states(table.relation) %}
        {% if not 0 <= point <= head %}
            {% do exceptions.raise_compiler_error(dbt_history._message(
                'clean_history', 'this transaction does not exist; nothing was done', got=point,
                expected='0 to ' ~ head,
            )) %}
        {% endif %}
        {% do points.append(point) %}
    {% endif %}
    {% if limit.keep_transactions is not none %}
        {% set source = dbt_history._numbers_of(limit.transactions, states) %}
        {% do held.append(run_query(
            'select coalesce(max(`txid`), 0) from ' ~ source
                ~ ' where `id` <= (select max(`id`) from ' ~ source ~ ') - '
                ~ (limit.keep_transactions - 1)
        ).rows[0][0] | int) %}
    {% endif %}
    {% if limit.age is not none %}
        {# Writers choose `updatedAt`: an old time may follow a young one. #}
        {% do held.append(run_query(
            'select coalesce(max(`txn`), 0) from ' ~ states
                ~ ' where `txn` < (select coalesce(min(`txn`), 9223372036854775807) from ' ~ states
                ~ ' where ' ~ dbt_history._quote(table.namespace)
            ~ '.`updatedAt` > unix_millis(current_timestamp() - interval ' ~ limit.age ~ '))'
        ).rows[0][0] | int) %}
    {% endif %}
    {% if held %}
        {% set held = held + dbt_history._marks_of(table).tags | map(attribute='number') | list %}
    {% endif %}
    {% do return((points + held) | min) %}
{% endmacro %}


{# Transactions with their numbers, as a sub-query; by default txn is the number. #}
{% macro _numbers_of(transactions, states) %}
    {% if transactions is none %}
        {% do return('(select `txn` as `txid`, `txn` as `id` from ' ~ states ~ ') as numbered') %}
    {% endif %}
    {% set source = transactions if transactions is string and '(' in transactions
        else dbt_history._table_name(transactions) %}
    {% do return(
        '(select `txid`, `id` from ' ~ source ~ ' as entries where `id` is not null) as numbered'
    ) %}
{% endmacro %}


{#
    The predicate of the versions that the limits allow to remove. It uses literals, so that Delta
    can skip files and drop whole ones.
#}
{% macro _may_go(table, limit, tags) %}
    {%- set convention = table.convention -%}
    {%- set terms = ['not ' ~ dbt_history._is_open(convention)] -%}
    {%- if limit.cutoff -%}
        {%- do terms.append(dbt_history._ended_by(
            convention, dbt_history._literal(limit.cutoff, convention), strictly=true,
        )) -%}
    {%- elif convention.type != 'bigint' -%}
        {#- The newest version may start in the future: the one before it is in force. -#}
        {%- do terms.append(dbt_history._ended_by(
            convention, dbt_history._point('now', {'convention': convention}, 'clean_history'),
        )) -%}
    {%- elif convention.open_end is not none -%}
        {%- do terms.append(
            dbt_history._quote(convention.end) ~ ' < ' ~ dbt_history._open_end(convention)
        ) -%}
    {%- endif -%}
    {%- if limit.get('last') is not none -%}
        {%- do terms.append(dbt_history._quote(convention.end) ~ ' <= ' ~ limit.last ~ 'L') -%}
    {%- endif -%}
    {%- if table.get('namespace') -%} {%- do terms.append('not `__is_deleted`') -%} {%- endif -%}
    {%- if limit.keep_versions -%}
        {%- do terms.append('`__place` > ' ~ limit.keep_versions) -%}
    {%- endif -%}
    {%- if limit.keep_referenced -%} {%- do terms.append('not `__is_referenced`') -%} {%- endif -%}
    {%- for tag in tags -%}
        {%- set at = dbt_history._literal(tag.instant, convention) -%}
        {%- do terms.append(
            'not (' ~ dbt_history._starts_by(convention, at) ~ ' and '
                ~ dbt_history._lasts_beyond(convention, at) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- do return(terms | join('\n                and ')) -%}
{% endmacro %}


{#
    The table with, where a limit needs them, each version's rank from the newest and whether
    another table refers to it. Empty versions, such as tombstones of deletions, have the last
    ranks.
#}
{% macro _ranked_versions(table, limit) %}
    {%- set convention = table.convention -%}
    {%- if not limit.keep_versions and not limit.keep_referenced and not table.get('namespace') -%}
        {%- do return(dbt_history._quoted_relation(table.relation)) -%}
    {%- endif -%}
    {%- set key = dbt_history._quoted(table.key) -%}
    {%- set identity = dbt_history._quoted(dbt_history._identity_columns(convention)) -%}
    {%- set sql -%}
(
                select
                    history.*
                    {%- if limit.keep_versions %},
                    row_number() over (
                        partition by history.{{ key | join(', history.') }}
                        order by
                            {{ dbt_history._is_not_empty(convention, 'history.') }} desc,
                            history.{{ identity | join(' desc, history.') }} desc
                    ) as `__place`
                    {%- endif %}
                    {%- if limit.keep_referenced %},
                    (
                        {%- for reference in limit.keep_referenced %}
                        coalesce(refers_{{ loop.index }}.yes, false){{ ' or' if not loop.last }}
                        {%- endfor %}
                    ) as `__is_referenced`
                    {%- endif %}
                    {%- if table.get('namespace') %},
                    {{ dbt_history._is_deletion(table) }} as `__is_deleted`
                    {%- endif %}
                from {{ dbt_history._quoted_relation(table.relation) }} as history
                {%- if table.get('namespace') %}
                left join (
                    select {{ key | join(', ') }}, max(`i`) as `_newest`
                    from {{ dbt_history._quoted_relation(table.relation) }}
                    group by {{ key | join(', ') }}
                ) as newest
                    on
                    {%- for name in key %}
                    history.{{ name }} <=> newest.{{ name }}{{ ' and' if not loop.last }}
                    {%- endfor %}
                {%- endif %}
                {%- for reference in limit.keep_referenced %}
                left join (
                    select distinct
                        true as yes,
                        {{ dbt_history._quoted(reference.columns.keys()) | join(', ') }}
                    from {{ dbt_history._referring(reference, 'clean_history') }}
                ) as refers_{{ loop.index }}
                    on
                    {%- set place = loop.index %}
                    {%- for column, referenced in reference.columns.items() %}
                    refers_{{ place }}.{{ dbt_history._quote(column) }}
                        = history.{{ dbt_history._quote(referenced) }}{{ ' and' if not loop.last }}
                    {%- endfor %}
                {%- endfor %}
            )
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    The tombstone of a feature that is deleted and not purged; on a branch every tombstone, because
    it hides the state that the branch, a branch of it or a tag would inherit.

        main      f1 at 1
        branch            deleted at 2   f3 at 3       as of 2 it has no f, and not f1
#}
{% macro _is_deletion(table) %}
    {%- set kept = ['history.`i` = newest.`_newest` and `purged_txn` is null'] -%}
    {%- if 'branch' in table.key | map('lower') -%}
        {%- do kept.append("coalesce(history.`branch`, 'main') <> 'main'") -%}
    {%- endif -%}
    {%- do return(
        '(history.' ~ dbt_history._quote(table.namespace)
            ~ ".`action` = 'DELETE' and (" ~ kept | join(' or ') ~ '))'
    ) -%}
{% endmacro %}


{#
    A table that refers to versions: {'table': node or schema.table, 'columns': {its column: column
    of the version}}.
#}
{% macro _referring(reference, caller_name) %}
    {%- set node = dbt_history._node_named(reference.table, caller_name) -%}
    {%- set parts = [node.schema, node.alias] if node else (reference.table | string).split('.') -%}
    {%- do return(dbt_history._quoted(parts) | join('.')) -%}
{% endmacro %}


{#
    One commit. Versions that ended after the published horizon are not removed, even if they were
    closed in between; nor is a tombstone that was purged after it, because its purge is a change:

        txn        3            4            5
        f          tombstone    horizon      purged      a range of changes from 5 on has the purge
#}
{% macro _remove_versions(table, limit, plan) %}
    {% set convention = table.convention %}
    {% set tags = dbt_history._marks_of(table).tags %}
    {% set within = dbt_history._ended_by(
        convention, dbt_history._literal(plan.retention_horizon, convention),
    ) %}
    {% set may_go = within ~ '\n                and ' ~ dbt_history._may_go(table, limit, tags)
        ~ ('\n                and coalesce(`purged_txn` <= ' ~ plan.retention_horizon
            ~ 'L, true)' if table.get('namespace') else '') %}
    {% set names = table.key + dbt_history._identity_columns(convention) %}
    {% set sql %}
        {%- if not limit.keep_versions and not limit.keep_referenced
            and not table.get('namespace') %}
        delete from {{ dbt_history._quoted_relation(table.relation) }} where {{ may_go }}
        {%- else %}
        merge into {{ dbt_history._quoted_relation(table.relation) }} as history
        using (
            select {{ dbt_history._quoted(names) | join(', ') }}
            from {{ dbt_history._ranked_versions(table, limit) }} as versions
            where {{ may_go }}
        ) as gone
        on {{ within.replace(
            dbt_history._quote(convention.end), 'history.' ~ dbt_history._quote(convention.end),
        ) }}
            {%- for name in dbt_history._quoted(names) %}
            and history.{{ name }} <=> gone.{{ name }}
            {%- endfor %}
        when matched then delete
        {%- endif %}
    {% endset %}
    {% do dbt_history._run_marked(
        sql, {'history_operation': 'clean_history', 'horizon': plan.retention_horizon}, table,
        'clean_history',
    ) %}
{% endmacro %}


{# Runs a statement with a record of the operation in its commit. #}
{% macro _run_marked(sql, record, table, caller_name) %}
    {% set failed = dbt_history._recorded_statement(table.relation, sql, record) %}
    {% if failed is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the table ' ~ table.relation ~ ' could not be written (' ~ failed ~ ')',
            expected='no other writer that changes the same rows at the same time',
            way_out='run the operation again',
        )) %}
    {% endif %}
{% endmacro %}
