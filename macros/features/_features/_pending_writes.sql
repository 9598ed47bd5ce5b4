{#
    The writes that a run applies, and the transactions among them that fail as a whole.

        log         … 41 | 42  43  44  45 …
                         '-- decided now --'    after = 41: the last batch
                                                last = 45: fixed, more may arrive

    What the compiled SELECT of this run notes about the same writes is used again, because each of
    these queries computes all outcomes; with branches, if none was created or dropped since.

    `marked`: the table of states, whose marks say which spaces record their history; they become
    `features.spaces`. They and the branches are read after the probe: a transaction that an
    operation on a space did not know of yet is not taken without the operation's mark.

    Returns {'after', 'last', 'states', 'has_purge', 'has_merge', 'epochs', 'refused', 'note'};
    `last` is `after` if nothing is pending.
#}
{% macro _pending_writes(features, states, after, marked) %}
    {% set id = local_md5(features | string ~ after) %}
    {% set known = namespace(note={}) %}
    {% for note in dbt_history._notes('writes', model.get('compiled_code')) if note.id == id %}
        {% set known.note = note %}
    {% endfor %}
    {% do features.update(
        dbt_history._content_with_stored(features, dbt_history._table_columns(states)),
    ) if states is not none %}
    {% set probe = known.note.get('probe') or dbt_history._probe(features, after) %}
    {% do dbt_history._refuse_unordered_writes(features, probe) %}
    {% do dbt_history._refuse_branches_without_history(features, probe) %}
    {% do features.update({
        'spaces': known.note.spaces if 'spaces' in known.note
            else dbt_history._space_facts(marked, is_sought=probe[0] is not none),
        'on_branches': probe[6] | int > 0,
    }) %}
    {% set epochs = dbt_history._branch_epochs(
        dbt_history._branch_facts(features.branches, is_sought=true)
    ) if features.on_branches else [] %}
    {% set branches_id = local_md5(epochs | string) %}
    {# No pending write is on a branch that was dropped, or in an epoch that ended, before them. #}
    {% set present = epochs | selectattr('until', 'none') | list %}
    {% set ended = epochs | rejectattr('until', 'none') | selectattr('until', 'gt', after) | list %}
    {% set epochs = (present + ended) | sort(attribute='epoch') %}
    {% do features.update({'state_type': dbt_history._state_type(features)}) %}
    {% do dbt_history._refuse_two_switches(features, marked) %}
    {% set pending = {
        'after': after, 'last': after if probe[0] is none else probe[0] | int, 'states': states,
        'has_purge': probe[1] | int > 0, 'has_merge': probe[2] | int > 0, 'refused': [],
        'epochs': epochs,
        'trims': probe[7] | int > 0,
    } %}
    {# Rendered once: the rounds and the model differ only in the list of refused transactions. #}
    {% do pending.update({'folded': dbt_history._folded_ctes(features, pending)}) %}
    {% if 'refused' in known.note and known.note.epochs == branches_id %}
        {% do pending.update({'refused': known.note.refused}) %}
    {% elif probe[0] is not none and probe[3] | int > 0 %}
        {% do pending.update({'refused': dbt_history._refused_transactions(features, pending)}) %}
    {% endif %}
    {% do pending.update({'note': {
        'id': id, 'after': after, 'last': pending.last, 'probe': probe, 'refused': pending.refused,
        'spaces': features.spaces, 'epochs': branches_id,
    }}) %}
    {% do return(pending) %}
{% endmacro %}


{# The row of the probe, as text that a note can hold. #}
{% macro _probe(features, after) %}
    {% set cells = [] %}
    {% for cell in run_query(dbt_history._pending_probe_sql(features, after)).rows[0].values() %}
        {% do cells.append(none if cell is none else cell | string) %}
    {% endfor %}
    {% do return(cells) %}
{% endmacro %}


{% macro _pending_probe_sql(features, after) %}
    select
        cast(max({{ features.names.txn }}) as bigint) as last,
        count_if({{ features.names.action }} = 'PURGE') as purges,
        {{ 'count_if(' ~ features.names.action ~ " = 'WRITE' and " ~ features.names.base_uuid
            ~ ' is not null)' if 'base_uuid' in features.names else '0' }} as bases,
        {{ "count_if(coalesce(" ~ features.names.mode ~ ", '" ~ features.mode
            ~ "') = 'all_or_nothing')"
            if 'mode' in features.names
            else ('count(*)' if features.mode == 'all_or_nothing' else '0') }} as all_or_nothing,
        count_if(
            {{ features.names.txn }} is null
                or {{ features.names.txn }} not between 0 and 1099511627775
        ) as without_transaction,
        count({{ features.names.txn }}, {{ features.names.position }})
            - count(distinct {{ features.names.txn }}, {{ features.names.position }}) as doubles,
        {{ "count_if(`branch` <> 'main')" if features.branched else '0' }} as on_branches,
        {{ 'count(*)' if features.keep_states is not none
            else ('count(' ~ features.names.keep_states ~ ')' if 'keep_states' in features.names
                else '0') }} as limits,
        {{ 'count_if(' ~ dbt_history._is_without_history(features) ~ ')' if features.branched
            else '0' }} as without_history
    from {{ features.writes }}
    where {{ features.names.txn }} > {{ after }}L or {{ features.names.txn }} is null
        or {{ features.names.txn }} < 0
{% endmacro %}


{#
    A write without a position in the log cannot be applied and must not be lost, so it is an error.
#}
{% macro _refuse_unordered_writes(features, probe) %}
    {% set problems = [] %}
    {% if probe[4] | int %}
        {% do problems.append(
            probe[4] ~ ' writes have no transaction, or one that is not in [0, 2^40)'
        ) %}
    {% endif %}
    {% if probe[5] | int %}
        {% do problems.append(
            probe[5] ~ ' writes have the transaction and the position of another one'
        ) %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            features.caller_name,
            'the log has writes that have no place of their own; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            expected='one write a transaction and position', node=model.unique_id,
            way_out='correct ' ~ features.names.txn ~ ' and ' ~ features.names.position
                ~ ' in the log, or in a view on it',
        )) %}
    {% endif %}
{% endmacro %}


{#
    A branch inherits the states of its parent as of its base. Without history the next write
    removes them, so what a branch inherits would depend on when dbt runs:

        txn       1           2              3
        main      f v1        f v2, off
        branch                base 1         f v3     one run: after v1; two runs: f is new

    All writes of the log are searched, because a stored state does not show how it was written.
#}
{% macro _refuse_branches_without_history(features, probe) %}
    {% if probe[6] | int + probe[8] | int == 0 or not dbt_history._may_write_off(features) %}
        {% do return(none) %}
    {% endif %}
    {% set space = dbt_history._space_column(features.key) %}
    {% set found = run_query(
        'select ' ~ ('cast(' ~ dbt_history._quote(space) ~ ' as string)' if space else "'the log'")
            ~ ' as name, count_if(' ~ dbt_history._is_without_history(features)
            ~ ") as without_history, count_if(`branch` <> 'main') as on_branches from "
            ~ features.writes
            ~ ' group by 1 having without_history > 0 and on_branches > 0 order by 1 limit 5'
    ).rows %}
    {% set problems = [] %}
    {% for row in found %}
        {% do problems.append(
            ('space ' if space) ~ row[0] ~ ': ' ~ row[1] ~ ' writes without history, ' ~ row[2]
                ~ ' on branches'
        ) %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            features.caller_name,
            'a branch reads its base from the history; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            expected='in each space either branches or writes without history',
            node=model.unique_id,
            way_out='record the history of these spaces: on in the column history, in a view on'
                ~ ' the log, or in the argument',
        )) %}
    {% endif %}
{% endmacro %}


{# The condition on a write of the log that it, or else the argument, says so. #}
{% macro _is_without_history(features) %}
    {%- do return(dbt_history._write_column(
        features, 'history', dbt_history._write_columns().history
    ) ~ " = 'off'") -%}
{% endmacro %}


{# The operations on spaces and the log's own column must not contradict each other. #}
{% macro _refuse_two_switches(features, marked) %}
    {% if features.spaces and 'history' in features.names %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            features.caller_name,
            'the history of spaces is switched in two ways',
            got='operations on the spaces of ' ~ marked ~ ', and the column '
                ~ features.names.history ~ ' of the log',
            expected='one of them', node=model.unique_id,
            way_out='leave the column out in a view on the log',
        )) %}
    {% endif %}
{% endmacro %}


{#
    The transactions that fail because one of their writes fails. Whether a write fails depends on
    the writes before it, and so on which earlier transactions failed: starting with none, the set
    is recomputed with the previous set until it does not change.

        round 1   all applied        5 fails (f exists), 7 fails (g exists)
        round 2   without 5, 7       5 fails,            7 does not: g was of transaction 5
        round 3   without 5          5 fails             the same set: done

    Each round settles at least one more transaction, in order, so the loop ends. A round is the
    last one if it finds the same set, or only adds transactions whose effects no later write sees
    (`is_seen`): without them all other writes have the same outcome.
#}
{% macro _refused_transactions(features, pending) %}
    {% set state = namespace(refused=[], is_stable=false, rounds=0) %}
    {% for attempt in range(1000) if not state.is_stable %}
        {% set found = run_query(dbt_history._refused_sql(
            features, dict(pending, refused=state.refused),
        )).rows %}
        {% set now = found | map(attribute=0) | map('int') | sort | list %}
        {% set seen = [] %}
        {% for row in found if row[1] and row[0] | int not in state.refused %}
            {% do seen.append(row[0]) %}
        {% endfor %}
        {% set state.is_stable = not seen and state.refused | reject('in', now) | list == [] %}
        {% set state.refused = now %}
    {% endfor %}
    {% if not state.is_stable %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            features.caller_name,
            'the failing transactions depend on each other in a chain of more than 1000',
            got=state.refused | length ~ ' failing transactions',
            node=model.unique_id,
            way_out='offer the log in parts: a filter on ' ~ features.names.txn
                ~ ' in the view of the writes',
        )) %}
    {% endif %}
    {% do return(state.refused) %}
{% endmacro %}


{% macro _with_refused(pending) %}
    {%- set refused = pending.refused -%}
    {%- do return(pending.folded.replace(
        '(true /* refused */)',
        '(txn in (' ~ refused | join('L, ') ~ 'L))' if refused else '(false)',
    )) -%}
{% endmacro %}


{#
    SQL of one round (`_refused_transactions`): the transactions that fail if those of
    `pending.refused` had no effect, {txn, is_seen}. `is_seen`: a later write may have another
    outcome without the transaction. With branches or merges every effect counts as seen.
#}
{% macro _refused_sql(features, pending) %}
    with {{ dbt_history._with_refused(pending) }},

    outcomes as (
        select
            explode(outcomes) as outcome,
            element_at(outcomes, -1).txn as last_txn
        from folded
    ),

    -- Only a write that made a state has an effect, on the later writes of its feature.
    effects as (
        select
            outcome.txn,
            substring_index(outcome.code, ':', 1) in ('CONFLICT', 'NOT_FOUND', 'ERROR') as fails,
            {%- if features.on_branches or pending.has_merge %}
            true as is_seen
            {%- else %}
            substring_index(outcome.code, ':', 1) <> 'RETAINED' and outcome.txn < last_txn
                as is_seen
            {%- endif %}
        from outcomes
        where outcome.mode = 'all_or_nothing'
            and outcome.txn_problem is null
    )

    select
        txn,
        coalesce(bool_or(not fails and is_seen), false) as is_seen
    from effects
    group by txn
    having bool_or(fails)
{% endmacro %}
