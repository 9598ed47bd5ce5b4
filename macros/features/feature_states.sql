{#
    Writes of features as states: staged rows for a `history_batch` model with the convention
    `naksha`.

        txn         1            2            3            4
        writes      CREATE f     UPDATE f     DELETE f     CREATE f
        states      [ f v1 -----)[ f v2 -----)| f v3       [ f v1 -------- open
                                              '- tombstone: closed by its own transaction

    All transactions since the last batch are one batch, with the number of the last of them, so the
    split of the log into runs does not matter. The effect of a transaction depends on the earlier
    ones, so the transactions that fail as a whole are determined when the model is compiled
    (`_refused_transactions`); the rest is one pass over the writes of each feature. See
    docs/flow/feature_states.md.
#}
{% macro feature_states(
    writes, id='id', payload=none, json=[], columns={}, mode='all_or_nothing',
    noop_updates='record', auto_purge=false, history='on', database_id=0,
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
    {% set features = dbt_history._feature_settings(writes, options, 'feature_states') %}
    {% set states = none if should_full_refresh() else load_relation(this) %}
    {% set pending = dbt_history._pending_writes(
        features, states, dbt_history.last_batch(), this,
    ) %}
    {% if pending.trims and not dbt_history._is_suspended(model.get('_last_batch_log')) %}
        {% do dbt_history._publish_trimming(features, pending) %}
    {% endif %}
    {% set sql = dbt_history._feature_states_sql(features, pending) %}
    {% do return(
        sql if pending.last == pending.after
            else dbt_history._note(
                'batch', {'number': pending.last, 'after': pending.after},
            ) ~ '\n' ~ sql
    ) %}
{% endmacro %}


{# One pass over the fold: a single generator turns the result of each feature into rows. #}
{% macro _feature_states_sql(features, pending) %}
{%- set may_lack_history = dbt_history._may_lack_history(features) -%}
{%- set sends_ends = dbt_history._sends_ends(features, pending) -%}
with {{ dbt_history._with_refused(pending) }},
{%- if pending.trims %}

{{ dbt_history._trimming_ctes(features, pending) }},
{%- endif %}

rows_of_features as (
    select
        {{ dbt_history._c_key(features) | join(', ') }},
        explode(concat(
            transform(
                new_states,
                state -> named_struct('removed_from', cast(null as bigint), 'state', state)
            )
            {%- if may_lack_history %},
            if(
                replaced_from is not null,
                array(named_struct(
                    'removed_from', replaced_from, 'state', cast(null as {{ features.state_type }})
                )),
                cast(
                    array() as array<struct<removed_from: bigint, state: {{ features.state_type }}>>
                )
            )
            {%- endif %}
            {%- if pending.trims %},
            if(
                removed_from is not null,
                array(named_struct(
                    'removed_from', removed_from, 'state', cast(null as {{ features.state_type }})
                )),
                cast(
                    array() as array<struct<removed_from: bigint, state: {{ features.state_type }}>>
                )
            )
            {%- endif %}
        )) as entry
        {%- if sends_ends %},
        ends
        {%- endif %}
    from {{ 'trimmed' if pending.trims else 'folded' }}
),

staged as (
    select
        if(entry.removed_from is null, 'upsert', 'earliest_start') as `_stage`,
        entry.state.seq as `_order`,
        {%- for name in features.key %}
        {{ dbt_history._prefixed(name) }},
        {%- endfor %}
        coalesce(entry.removed_from, entry.state.txn) as `txn`,
        {%- if sends_ends %}
        if(
            entry.state.action = 'DELETE',
            entry.state.txn,
            try_element_at(filter(ends, other -> other.i = entry.state.i), 1).until
        ) as `txn_next`,
        {%- else %}
        if(entry.state.action = 'DELETE', entry.state.txn, null) as `txn_next`,
        {%- endif %}
        entry.state.i as `i`,
        entry.state
    from rows_of_features
)

select
    `_stage`,
    {{ pending.last }}L as `_batch`,
    `_order`,
    {%- for name in features.key %}
    {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }},
    {%- endfor %}
    `i`,
    `txn`,
    `txn_next`,
    {%- for name in features.payload %}
    state.content.{{ dbt_history._quote('p' ~ loop.index0) }} as {{ dbt_history._quote(name) }},
    {%- endfor %}
    state.author_txn as `author_txn`,
    state.created_txn as `created_txn`,
    state.purged_txn as `purged_txn`,
    state.resync as `resync`,
    if(state is null, null, named_struct(
        {%- for name in [
            'action', 'version', 'author', 'app_id', 'puuid', 'uuid', 'txn', 'createdAt',
            'updatedAt', 'rtcts', 'rtuts',
        ] %}
        '{{ name }}', state.{{ 'txn_uuid' if name == 'txn' else name }}{{ ',' if not loop.last }}
        {%- endfor %}
    )) as {{ dbt_history._quote(features.namespace) }}
from staged
{% endmacro %}
