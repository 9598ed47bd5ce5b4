{#
    The outcome of each write: one row per write that `feature_states` with the same arguments
    reads, for a log of outcomes or, with a filter, of rejected writes. Every write has its row.

    `states` is the table of states, `after` the last transaction whose outcomes are known (the last
    batch of the model's own table): later writes are evaluated on the states as of then, even if
    the table of states is newer. If it is older, the writes that it lacks are evaluated again, but
    only rows after `after` are returned. Without `states` the whole log is evaluated again, and
    also if states of then have been removed since (keep_states, clean_history, history off); the
    rows are the same.

        txn         1            2            3            keep_states: 1
        states      [ f v1 ------)[ f v2 -----)[ f v3      f v1 is removed, the horizon is 2
        outcomes    known        '-- evaluated now --'     after = 1: they need f v1
#}
{% macro feature_outcomes(
    writes, states=none, after=none, id='id', payload=none, json=[], columns={},
    mode='all_or_nothing', noop_updates='record', auto_purge=false, history='on', database_id=0,
    namespace='@ns:com:here:xyz', branches=none, keep_states=none
) %}
    {% if not execute %}
        {% do return('select 1 as not_compiled') %}
    {% endif %}
    {% set options = {
        'id': id, 'payload': payload, 'json': json, 'columns': columns, 'mode': mode,
        'noop_updates': noop_updates,
        'auto_purge': auto_purge, 'history': history, 'database_id': database_id,
        'namespace': namespace,
        'branches': branches, 'keep_states': keep_states,
    } %}
    {% set features = dbt_history._feature_settings(writes, options, 'feature_outcomes') %}
    {% set stored = dbt_history._loaded(states, 'feature_outcomes') if states is not none
        else none %}
    {% set after = -1 if after is none else after | int %}
    {% set base = dbt_history._base_of_outcomes(features, stored, after) %}
    {% set pending = dbt_history._pending_writes(
        features, none if base < 0 else stored, base, stored,
    ) %}
    {% do pending.update({'known': after if base < after else none}) %}
    {% set sql = dbt_history._feature_outcomes_sql(features, pending) | trim %}
    {% do return(
        dbt_history._note('writes', dict(pending.note, text=local_md5(sql))) ~ '\n' ~ sql
    ) %}
{% endmacro %}


{#
    The transaction on whose states the writes after it are evaluated; -1 for the whole log, which
    needs no states. The states may be behind the outcomes (suspended, or not run yet):

        txn         5            7            8
        states      applied
        outcomes    known        known        after = 7
        log         f absent     CREATE f     UPDATE f: UPDATED, because 7 is evaluated again

    If they are ahead, those of `after` may be gone: below the horizon, where writes are without
    history, and the bases of merges.
#}
{% macro _base_of_outcomes(features, stored, after) %}
    {# Before the first transaction there were no states. #}
    {% if stored is none or after < 0 %} {% do return(-1) %} {% endif %}
    {% set applied = dbt_history._last_applied(stored, dbt_history._quoted_relation(stored)) %}
    {% set base = [applied, after] | min %}
    {% set spaces = dbt_history._space_facts(stored, is_sought=true) if applied > base else [] %}
    {% set horizon = dbt_history._marks_of(
        {'relation': stored, 'convention': dbt_history.convention('naksha')},
    ).retention_horizon or 0 %}
    {% set is_gone = horizon > base or (
        applied > base and (
            dbt_history._may_lack_history(dict(features, spaces=spaces))
            or (horizon > 0 and dbt_history._has_lost_bases(features, stored, base))
        )
    ) %}
    {% do return(-1 if is_gone else base) %}
{% endmacro %}


{#
    Whether the states have merged a write after `base` with a state that is stored no more. Its end
    may be before `base`, so the horizon does not show it:

        txn       1            2            3            keep_states: 1, base = 2
        f         [ v1 ------)[ v2 -------)[ v3          v3 is v2 merged with a write of v1's base
        stored                 [ v2 -------)[ v3         v1 is removed, the horizon is 2

    A base that the states did not have either made no merge, and is not needed.
#}
{% macro _has_lost_bases(features, stored, base) %}
    {% if 'base_uuid' not in features.names or 'on_version_conflict' not in features.names %}
        {% do return(false) %}
    {% endif %}
    {% set states = dbt_history._quoted_relation(stored) %}
    {% set xyz = dbt_history._quote(features.namespace) %}
    {% do return(run_query(
        'select count(*) from (select lower(' ~ features.names.base_uuid ~ ') as base_uuid, '
            ~ features.names.txn ~ ' * 1048576 + ' ~ features.names.position ~ ' as i from '
            ~ features.writes
        ~ ' where ' ~ features.names.txn ~ ' > ' ~ base ~ 'L and ' ~ features.names.action
            ~ " = 'WRITE' and " ~ features.names.on_version_conflict ~ " = 'MERGE') as written"
        ~ ' left semi join ' ~ states ~ ' as made on made.`i` = written.i and made.`txn` > '
            ~ base ~ 'L and lower(made.' ~ xyz ~ '.`puuid`) <> written.base_uuid'
        ~ ' left anti join ' ~ states ~ ' as kept on lower(kept.' ~ xyz
            ~ '.`uuid`) = written.base_uuid'
    ).rows[0][0] | int > 0) %}
{% endmacro %}


{#
    SQL: one row per write. What is wrong with a transaction is the outcome of all its writes. In a
    transaction that fails because of some of its writes, those keep their own outcome, and the
    others are UNDONE.
#}
{% macro _feature_outcomes_sql(features, pending) %}
with {{ dbt_history._with_refused(pending) }},

outcomes as (
    select
        {%- for name in features.key %}
        {{ dbt_history._prefixed(name) }},
        {%- endfor %}
        explode(outcomes) as outcome
    from folded
)

select
    {{ pending.last }}L as `_batch`,
    outcome.txn as `txn`,
    outcome.position as `position`,
    {%- for name in features.key %}
    {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }},
    {%- endfor %}
    outcome.action as `action`,
    case
        when outcome.txn_problem is not null then outcome.txn_problem.outcome
        when outcome.is_refused
            and substring_index(outcome.code, ':', 1) not in ('CONFLICT', 'NOT_FOUND', 'ERROR')
            then 'UNDONE'
        else substring_index(outcome.code, ':', 1)
    end as `outcome`,
    case
        when outcome.txn_problem is not null then outcome.txn_problem.reason
        when outcome.is_refused
            and substring_index(outcome.code, ':', 1) not in ('CONFLICT', 'NOT_FOUND', 'ERROR')
            then 'another write of the transaction failed'
        {%- for code, reason in dbt_history._outcome_reasons().items() %}
        when outcome.code = '{{ code }}' then '{{ reason }}'
        {%- endfor %}
    end as `reason`,
    outcome.is_refused as `is_refused`,
    not outcome.is_refused and (
        outcome.code in ('CREATED', 'UPDATED', 'DELETED')
        or (outcome.code = 'PURGED' and outcome.was_live)
    ) as `has_state`,
    outcome.i as `i`,
    outcome.app_id as `app_id`,
    outcome.author as `author`,
    outcome.message as `message`,
    outcome.commit_json as `commit_json`,
    timestamp_millis(outcome.at_ms) as `at`
from outcomes
{%- if pending.known is not none %}
where outcome.txn > {{ pending.known }}L
{%- endif %}
{% endmacro %}


{# Why a write made no state, by the code from the fold. #}
{% macro _outcome_reasons() %}
    {% do return({
        'CONFLICT:exists': 'the feature exists',
        'CONFLICT:uuid': 'the state that the write expects is not the current one',
        'CONFLICT:base': 'the feature was changed since the base of the write',
        'CONFLICT:merge': 'an attribute was changed on both sides since the base of the write',
        'NOT_FOUND': 'the feature does not exist',
        'ERROR:branch': 'there is no such branch at this point of the log',
        'ERROR:action': 'the action, or a strategy of it, is none that is known',
        'ERROR:keep_states': 'keep_states is less than 1: 1 or more, or NULL for the argument',
        'ERROR:position': 'the position in the transaction is missing, or not in [0, 2^20)',
        'RETAINED:missing': 'there is nothing to delete',
        'RETAINED:same': 'the content is the same',
        'RETAINED': 'the strategy of the write keeps the existing state',
    }) %}
{% endmacro %}
