{#
    Whether the history of a space is recorded, as facts in the marks of the schema. A fact holds
    for the transactions after `since`, the end of the log when it was added:

        txn        1    2    3  | 4    5  | 6    7  | 8    9
        facts                   suspended on        off
        history    on   on   on   off  off  on   on   off  off     decides outcomes
        removed    yes  yes  yes            yes  yes               by `off`: nothing of it stays

    A table that is built again from the log is the same: outcomes depend on the history that there
    was at the time, and what `off` removed is not kept.

    [{'space', 'state', 'since'}] in order; `space` is NULL in a table that holds one space.
    `is_sought`: the first mark of the schema may be younger than dbt's cache.
#}
{% macro _space_facts(relation, is_sought=false) %}
    {% set facts = [] %}
    {% set marks = dbt_history._marks(relation) %}
    {% if marks is none and is_sought and relation is not none and load_relation(relation) %}
        {% set marks = dbt_history._made_meanwhile(
            relation.incorporate(path={'identifier': 'history_marks'}),
        ) %}
    {% endif %}
    {% if marks is not none %}
        {% for row in run_query(
            'select name, kind, try_cast(instant as bigint) as since from '
                ~ dbt_history._quoted_relation(marks)
            ~ ' where table_name = '
                ~ dbt_history._string_literal(relation.identifier | lower)
            ~ " and kind in ('space_on', 'space_suspended', 'space_off')"
            ~ ' order by since, recorded_at'
        ).rows %}
            {% do facts.append({
                'space': row[0], 'state': row[1].replace('space_', ''), 'since': row[2] | int,
            }) %}
        {% endfor %}
    {% endif %}
    {% do return(facts) %}
{% endmacro %}


{# The key column that names the space, as it is spelled; none if the table holds one space. #}
{% macro _space_column(key) %}
    {% set found = [] %}
    {% for name in key if name | lower == 'space' %}{% do found.append(name) %}{% endfor %}
    {% do return(found | first if found else none) %}
{% endmacro %}


{# `on` or `off` for a write, by the facts about its space; `default` where there are none. #}
{% macro _history_by_space(facts, key, txn, default) %}
    {%- set column = dbt_history._space_column(key) -%}
    {%- set spaces = {} -%}
    {%- for fact in facts if (fact.space is none) == (column is none) -%}
        {%- do spaces.setdefault(fact.space, []).append(fact) -%}
    {%- endfor -%}
    {%- set cases = [] -%}
    {%- for space, own in spaces.items() -%}
        {%- set periods = dbt_history._recorded_periods(own, txn, default) -%}
        {%- if column is none -%} {%- do return(periods) -%} {%- endif -%}
        {%- do cases.append(
            'when cast(' ~ dbt_history._quote(column) ~ ' as string) = '
                ~ dbt_history._string_literal(space) ~ ' then ' ~ periods
        ) -%}
    {%- endfor -%}
    {%- do return(
        'case ' ~ cases | join(' ') ~ ' else ' ~ default ~ ' end' if cases else default
    ) -%}
{% endmacro %}


{# The periods of one space as a CASE. #}
{% macro _recorded_periods(facts, txn, default) %}
    {%- set state = namespace(terms=[], before=default) -%}
    {%- for fact in facts -%}
        {%- do state.terms.append(
            'when ' ~ txn ~ ' <= ' ~ fact.since ~ 'L then ' ~ state.before
        ) -%}
        {%- set state.before = "'on'" if fact.state == 'on' else "'off'" -%}
    {%- endfor -%}
    {%- do return('case ' ~ state.terms | join(' ') ~ ' else ' ~ state.before ~ ' end') -%}
{% endmacro %}


{#
    The transactions after which `off` removed the history of a write's space, as an array: NULL if
    there is none.
#}
{% macro _removals_by_space(facts, key) %}
    {%- set column = dbt_history._space_column(key) -%}
    {%- set spaces = {} -%}
    {%- for fact in facts
        if fact.state == 'off' and (fact.space is none) == (column is none) -%}
        {%- do spaces.setdefault(fact.space, []).append(fact.since ~ 'L') -%}
    {%- endfor -%}
    {%- set cases = [] -%}
    {%- for space, own in spaces.items() -%}
        {%- do cases.append(
            ('when true' if column is none
                else 'when cast(' ~ dbt_history._quote(column) ~ ' as string) = '
                    ~ dbt_history._string_literal(space))
            ~ ' then array(' ~ own | join(', ') ~ ')'
        ) -%}
    {%- endfor -%}
    {%- do return(
        'case ' ~ cases | join(' ') ~ ' end' if cases else 'cast(null as array<bigint>)'
    ) -%}
{% endmacro %}
