{#
    `keep_states`: the number of newest closed states of a feature to keep, applied at its next
    write.

        stored      v1  v2  v3  v4 |  open v5          keep_states: 2
        written                    |  v6  v7
        closed      1   2   3   4     5   6            after v7 six are closed; four are removed
        stays                         v5  v6  v7

    Each write trims by its own limit; the greatest trim applies. The rows of the batch replace the
    feature: everything from its first stored state on is deleted, and the states to keep are sent
    again, with their ends; the merge leaves identical rows unchanged. A state in force at a tag
    stays, so a gap may follow it:

        txn         1      2      3      4      5       keep_states: 2
        tag         here
        stays       [ v1 --)      [ v3 --)[ v4 --)[ v5

    CTE `trimmed`: `folded` with `new_states` (the states to send), `gone` (the states to remove)
    and `removed_from` (NULL if no stored state is removed).
#}
{% macro _trimming_ctes(features, pending) %}
{{ dbt_history._sequence_ctes(features, pending) }}

{{ dbt_history._surplus_ctes(features) }}

trimmed as (
    select
        {{ dbt_history._c_key(features) | join(', ') }},
        head,
        sequence,
        gone,
        outcomes,
        {{ 'concat(ends, stored_ends) as ends' if pending.states is not none else 'ends' }},
        {%- if dbt_history._may_lack_history(features) %}
        replaced_from,
        {%- endif %}
        if(
            size(gone) > 0,
            filter(
                sequence, state -> not array_contains(transform(gone, other -> other.i), state.i)
            ),
            new_states
        ) as new_states,
        if(size(gone) > 0, array_min(transform(stored, state -> state.txn)), null) as removed_from
    from sorted_out
)
{%- endmacro %}


{#
    CTE `ordered`: `folded` with `stored`, the stored states, and `sequence`, these and the new
    ones, oldest first.
#}
{% macro _sequence_ctes(features, pending) %}
{%- set key = dbt_history._c_key(features) -%}
{%- set names = key | join(', ') -%}
{%- if pending.states is not none %}
limited as (
    select distinct {{ names }}
    from identified
    where keep_states is not null
),

stored_states as (
    select
        {%- for name in features.key %}
        stored.{{ dbt_history._quote(name) }} as {{ dbt_history._prefixed(name) }},
        {%- endfor %}
        collect_list(named_struct('i', stored.`i`, 'until', stored.`txn_next`)) as stored_ends,
        collect_list({{ dbt_history._stored_state(features, pending) | indent(8) }}) as stored
    from {{ dbt_history._quoted_relation(pending.states) }} as stored
    left semi join limited
        on {{ dbt_history._same_feature(features, 'limited') }}
    where stored.`txn` <= {{ pending.after }}L
    group by
        {%- for name in features.key %}
        stored.{{ dbt_history._quote(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
),

{% endif -%}
sequences as (
    select
        folded.*,
        {{ 'coalesce(stored_states.stored, cast(array() as array<' ~ features.state_type ~ '>))'
            if pending.states is not none
            else 'cast(array() as array<' ~ features.state_type ~ '>)' }} as stored
        {%- if pending.states is not none %},
        coalesce(
            stored_states.stored_ends, cast(array() as array<struct<i: bigint, until: bigint>>)
        ) as stored_ends
        {%- endif %}
    from folded
    {%- if pending.states is not none %}
    left join stored_states
        on {{ dbt_history._same_columns(key, 'folded', 'stored_states') }}
    {%- endif %}
),

-- A tombstone that was purged later occurs twice: the last one applies.
ordered as (
    select
        *,
        array_sort(
            filter(
                concat(
                    {{ 'filter(stored, state -> coalesce(state.txn < replaced_from, true))'
                        if dbt_history._may_lack_history(features) else 'stored' }},
                    new_states
                ),
                state -> not exists(
                    new_states, other -> other.i = state.i and other.seq > state.seq
                )
            ),
            (one, other) -> case when one.i < other.i then -1 when one.i > other.i then 1 else 0 end
        ) as sequence
    from sequences
),
{%- endmacro %}


{#
    CTE `sorted_out`: how many states of a sequence are too many after any of its writes, and which
    ones are removed.
#}
{% macro _surplus_ctes(features) -%}
{%- set may_lack_history = dbt_history._may_lack_history(features) -%}
counted as (
    select
        *,
        coalesce(array_max(transform(
            filter(
                outcomes,
                outcome -> {{ 'not array_contains(off, outcome.i) and' if may_lack_history }}
                    outcome.keep_states is not null
                    and not outcome.is_refused
                    and outcome.code in ('CREATED', 'UPDATED', 'DELETED', 'PURGED')
            ),
            outcome -> size(filter(sequence, state -> state.i < outcome.i))
                + if(
                    exists(sequence, state -> state.i = outcome.i and state.action = 'DELETE'), 1, 0
                )
                - outcome.keep_states
        )), 0) as surplus
    from ordered
),

sorted_out as (
    select
        *,
        filter(
            sequence, (state, place) -> not ({{ dbt_history._stays_at_place(features) }})
        ) as gone
    from counted
),
{%- endmacro %}


{# Whether a state of the sequence is kept: it is newer than the surplus, or in force at a tag. #}
{% macro _stays_at_place(features) %}
    {%- set until = 'if(' ~ dbt_history._is_empty_state(features)
        ~ ', state.txn, try_element_at(sequence, place + 2).txn)' -%}
    {%- set terms = ['place >= surplus'] -%}
    {%- for tag in dbt_history._marks_of({
        'relation': this, 'convention': dbt_history.convention('naksha'),
    }).tags -%}
        {%- do terms.append(
            '(state.txn <= ' ~ tag.number ~ 'L and (' ~ until ~ ' is null or ' ~ until ~ ' > '
                ~ tag.number ~ 'L))'
        ) -%}
    {%- endfor -%}
    {%- do return(terms | join(' or ')) -%}
{% endmacro %}


{% macro _same_columns(names, left, right) %}
    {%- set terms = [] -%}
    {%- for name in names -%}
        {%- do terms.append(left ~ '.' ~ name ~ ' <=> ' ~ right ~ '.' ~ name) -%}
    {%- endfor -%}
    {%- do return(terms | join(' and ')) -%}
{% endmacro %}


{#
    Whether a state is in force at no point: a tombstone. On a branch it is, until the next state,
    because it hides what the branch would inherit.
#}
{% macro _is_empty_state(features) %}
    {%- do return(
        "state.action = 'DELETE'" ~ (" and state.branch = 'main'" if features.on_branches else '')
    ) -%}
{% endmacro %}


{#
    Publishes the horizon of the trimming before anything is removed: the greatest end of the
    removed states, and of a purged tombstone its purge. Only in a run.
#}
{% macro _publish_trimming(features, pending) %}
    {% if flags.WHICH not in ['run', 'build'] or not pending.trims
        or dbt_history._hiding_option() is not none %}
        {% do return(none) %}
    {% endif %}
    {% set retention_horizon = run_query(
        'with ' ~ dbt_history._with_refused(pending) ~ ', '
            ~ dbt_history._trimming_ctes(features, pending)
        ~ ' select max(array_max(transform(gone, state -> greatest(if('
            ~ dbt_history._is_empty_state(features) ~ ', state.txn, '
        ~ 'array_min(transform(filter(sequence, other -> other.i > state.i), other ->'
            ~ ' other.txn))), state.purged_txn)))) from trimmed'
    ).rows[0][0] %}
    {% set table = {'relation': this, 'convention': dbt_history.convention('naksha')} %}
    {% if retention_horizon is not none
        and (dbt_history._marks_of(table).retention_horizon or 0) < retention_horizon | int %}
        {% do dbt_history._add_mark(
            table, 'horizon', instant=retention_horizon | string, reason='keep_states',
        ) %}
    {% endif %}
{% endmacro %}
