{#
    Applies one feature's writes, oldest first, to its previous state: an `aggregate` with the
    accumulator

        now        the state after the writes so far, including those of a transaction that fails
        settled    the state after the last transaction that does not fail
        txn, is_refused   the transaction of the last write
        new_states, outcomes   the results

        write of              the next transaction starts from
        a valid transaction   now
        a refused one         settled: the effects of the refused one are discarded

    With branches, one fold applies the writes of an item on all its branches; `now` and `settled`
    are arrays, with the last state on each branch. A write on a branch without a state of its own
    changes what the branch inherits (`_inherited_state`):

        txn     10        20        30        40
        main    [ v1 -----[ v2 ---------------[ v3 ----
        b       fork                [ v1' -------------     changes v1, main's state at the fork

    A deletion without history leaves no tombstone, so a purge finds the last one that was stored
    (`_stored_tombstone`). Each `transform(array(x), name -> …)` binds a value to a name, because
    SQL has no let.
#}
{% macro _fold_expression(features, pending) %}
{%- set carried = features.state_type -%}
{%- if features.on_branches -%} {%- set carried = 'array<' ~ carried ~ '>' -%} {%- endif -%}
{%- set head = "coalesce(head, array())" if features.on_branches else 'head' -%}
{%- set all_of_write = "'carried', " ~ dbt_history._carried('now') ~ ', ' if features.on_branches
    else '' -%}
{%- set all_of_x = "'carried', x.carried, " if features.on_branches else '' -%}
aggregate(
    writes,
    cast(named_struct(
        'now', {{ head }}, 'settled', {{ head }}, 'txn', cast(null as bigint), 'is_refused', false,
        'new_states', array(), 'outcomes', array()
    ) as struct<
        now: {{ carried }},
        settled: {{ carried }},
        txn: bigint,
        is_refused: boolean,
        new_states: array<{{ features.state_type }}>,
        outcomes: array<{{ dbt_history._outcome_type(features) }}>
    >),
    (acc, w) -> element_at(
        transform(
            transform(
                transform(
                    array(named_struct(
                        {{ all_of_write }}'own', {{ dbt_history._own_state(features) }},
                        'now', {{ dbt_history._state_to_change(
                            features, pending,
                        ) | indent(24) }},
                        'settled', {{ dbt_history._carried('settled') }}
                    )),
                    x -> named_struct(
                        {{ all_of_x }}'own', x.own, 'now', x.now, 'settled', x.settled,
                        'live', if(x.now.action <> 'DELETE', x.now, null),
                        'merged', {{ dbt_history._merged(features) | indent(20) if pending.has_merge
                            else 'cast(null as ' ~ dbt_history._merged_type(features) ~ ')' }}
                    )
                ),
                x -> named_struct(
                    {{ all_of_x }}'own', x.own, 'now', x.now, 'settled', x.settled,
                    'live', x.live,
                    'merged', x.merged, 'code', {{ dbt_history._decision(features) | indent(16) }}
                )
            ),
            x -> {{ dbt_history._next_accumulator(features) | indent(12) }}
        ),
        1
    ),
    acc -> named_struct('new_states', acc.new_states, 'outcomes', acc.outcomes)
)
{%- endmacro %}


{# What the transaction of a write starts from, or what its earlier writes made. #}
{% macro _carried(name) %}
    {%- do return(
        'if(acc.txn = w.txn, acc.' ~ name ~ ', if(acc.is_refused, acc.settled, acc.now))'
    ) -%}
{% endmacro %}


{# The last state on the branch of a write. #}
{% macro _own_state(features) %}
    {%- set carried = dbt_history._carried('now') -%}
    {%- do return(
        'get(' ~ dbt_history._of_branch('w', carried) ~ ', 0)' if features.on_branches else carried
    ) -%}
{% endmacro %}


{# The state that a write changes. #}
{% macro _state_to_change(features, pending) %}
    {%- set own = dbt_history._stored_tombstone(features)
        if dbt_history._reads_tombstones(features, pending)
        else dbt_history._own_state(features) -%}
    {%- do return(
        'coalesce(' ~ own ~ ', ' ~ dbt_history._inherited_state(features, pending) ~ ')'
            if features.on_branches else own
    ) -%}
{% endmacro %}


{#
    The state that a write starts from, where deletions may have left no tombstone: instead of one
    that was not recorded, or was removed with the history of its space, the last one that is there.

        txn       1         2        3         4        5
        history   on        on       off       off      on
        f         CREATE    DELETE   CREATE    DELETE   PURGE     it finds the tombstone of 2
#}
{% macro _stored_tombstone(features) -%}
{%- set gone = "array_contains(transform(filter(writes, other -> other.history = 'off'), other ->"
    ~ " other.i), made.i)" -%}
{%- if features.get('spaces') -%}
    {%- set gone = gone ~ ' or coalesce(exists('
        ~ 'w.removals, since -> made.txn <= since and since < w.txn), false)' -%}
{%- endif -%}
{%- set tombstone, new_states = 'tombstone', 'acc.new_states' -%}
{%- if features.on_branches -%}
    {%- set tombstone = 'get(' ~ dbt_history._of_branch('w', tombstone) ~ ', 0)' -%}
    {%- set new_states = dbt_history._of_branch('w', new_states) -%}
{%- endif -%}
element_at(
    transform(
        array({{ dbt_history._own_state(features) }}),
        made -> if(
            coalesce(made.action = 'DELETE', false) and ({{ gone }}),
            try_element_at(
                filter(
                    if(
                        {{ tombstone }} is null,
                        {{ new_states }},
                        concat(array({{ tombstone }}), {{ new_states }})
                    ),
                    made -> made.action = 'DELETE' and not ({{ gone }})
                ),
                -1
            ),
            made
        )
    ),
    1
)
{%- endmacro %}


{% macro _outcome_type(features) %}
    {%- do return(
        'struct<' ~ ('branch: string, fork: bigint, ' if features.on_branches else '')
            ~ 'i: bigint, txn: bigint, position: bigint, action: string, code: string, was_live:'
            ~ ' boolean, mode: string, is_refused: boolean,'
        ~ ' txn_problem: struct<outcome: string, reason: string>, app_id: string, author: string,'
            ~ ' message: string, commit_json: string, at_ms: bigint, keep_states: bigint>'
    ) -%}
{% endmacro %}


{#
    The outcome of a write as a code: CREATED, UPDATED, MERGED, DELETED, PURGED, RETAINED:…,
    CONFLICT:…, NOT_FOUND, ERROR:…
#}
{% macro _decision(features) %}
case
    when w.txn_problem is not null then 'ERROR:transaction'
    when w.problem is not null then w.problem
    when x.live is null then case
        when w.action = 'PURGE' and x.now.action = 'DELETE' and x.now.purged_txn is null
            then if(
                w.expected_uuid is null or w.expected_uuid = lower(x.now.uuid),
                'PURGED',
                'CONFLICT:uuid'
            )
        when w.if_absent = 'RETAIN' then if(w.action = 'WRITE', 'RETAINED', 'RETAINED:missing')
        when w.if_absent = 'ERROR' then 'NOT_FOUND'
        when w.expected_uuid is not null then 'CONFLICT:uuid'
        else 'CREATED'
    end
    when w.action = 'CREATE' then 'CONFLICT:exists'
    when w.expected_uuid is not null and w.expected_uuid <> lower(x.live.uuid) then 'CONFLICT:uuid'
    when w.base_uuid is not null and w.base_uuid <> lower(x.live.uuid)
        and w.on_version_conflict <> 'REPLACE'
        then case
        when w.on_version_conflict = 'ERROR' then 'CONFLICT:base'
        when w.on_version_conflict = 'RETAIN' then 'RETAINED'
        when not x.merged.clashes
            then {{ dbt_history._unless_same(features, 'x.merged.content', 'MERGED') }}
        when w.on_merge_conflict = 'ERROR' then 'CONFLICT:merge'
        when w.on_merge_conflict = 'RETAIN' then 'RETAINED'
        else {{ dbt_history._unless_same(features, 'w.content', 'UPDATED') }}
    end
    when w.if_live = 'ERROR' then 'CONFLICT:exists'
    when w.if_live = 'RETAIN' then 'RETAINED'
    when w.if_live = 'DELETE' then 'DELETED'
    when w.if_live = 'PURGE' then 'PURGED'
    else {{ dbt_history._unless_same(features, 'w.content', 'UPDATED') }}
end
{%- endmacro %}


{% macro _unless_same(features, content, code) %}
    {%- set terms = [] -%}
    {%- for name in features.payload -%}
        {%- do terms.append(
            dbt_history._content_value(features, content, name, loop.index0) ~ ' <=> '
                ~ dbt_history._content_value(features, 'x.live.content', name, loop.index0)
        ) -%}
    {%- endfor -%}
    {%- do return(
        "if(w.noop_updates = 'skip' and " ~ terms | join(' and ') ~ ", 'RETAINED:same', '" ~ code
            ~ "')"
    ) -%}
{% endmacro %}


{# The accumulator after a write; `x` holds the state before it and the decision. #}
{% macro _next_accumulator(features) %}
{%- set is_error = "substring_index(x.code, ':', 1) in ('CONFLICT', 'NOT_FOUND', 'ERROR',"
    ~ " 'RETAINED')" -%}
element_at(
    transform(
        array(case
            when {{ is_error }} then null
            when x.code = 'PURGED' and x.live is null
                then {{ dbt_history._purged_state(features) | indent(12) }}
            else {{ dbt_history._new_state(features) | indent(12) }}
        end),
        state -> named_struct(
            {%- if features.on_branches %}
            'now',
            if(
                state is null,
                x.carried,
                concat(
                    filter(
                        x.carried, other -> other.branch <> w.branch or other.fork <> w.fork
                    ),
                    array(state)
                )
            ),
            {%- else %}
            'now', coalesce(state, x.own),
            {%- endif %}
            'settled', x.settled,
            'txn', w.txn,
            'is_refused', w.is_refused,
            'new_states',
            if(state is null or w.is_refused, acc.new_states, concat(acc.new_states, array(state))),
            'outcomes', concat(acc.outcomes, array(cast(named_struct(
                {%- if features.on_branches %}
                'branch', w.branch, 'fork', w.fork,
                {%- endif %}
                'i', w.i, 'txn', w.txn, 'position', w.position, 'action', w.action,
                'code', if(x.code = 'MERGED', 'UPDATED', x.code),
                'was_live', x.live is not null, 'mode', w.mode, 'is_refused', w.is_refused,
                'txn_problem', w.txn_problem,
                'app_id', w.app_id, 'author', w.author, 'message', w.message,
                'commit_json', w.commit_json, 'at_ms', w.at_ms,
                'keep_states', w.keep_states
            ) as {{ dbt_history._outcome_type(features) }})))
        )
    ),
    1
)
{%- endmacro %}


{#
    A deleted feature is purged: its tombstone gets the number of the purging transaction, nothing
    else changes.
#}
{% macro _purged_state(features) %}
    {%- set parts = [] -%}
    {%- for name in dbt_history._state_fields(features) -%}
        {%- set value = {'seq': 'w.i', 'purged_txn': 'w.txn'}.get(name, 'x.now.' ~ name) -%}
        {%- do parts.append("'" ~ name ~ "', " ~ value) -%}
    {%- endfor -%}
    {%- do return(
        'cast(named_struct(' ~ parts | join(', ') ~ ", 'content', x.now.content) as "
            ~ features.state_type ~ ')'
    ) -%}
{% endmacro %}


{#
    The state that a write makes. A tombstone keeps the content. If the write has no author, the
    author is kept, or is the application if there was none.
#}
{% macro _new_state(features) %}
cast(named_struct(
    {%- if features.on_branches %}
    'branch', w.branch, 'fork', w.fork,
    {%- endif %}
    'i', w.i,
    'seq', w.i,
    'txn', w.txn,
    'action', case x.code
        when 'CREATED' then 'CREATE'
        when 'UPDATED' then 'UPDATE'
        when 'MERGED' then 'UPDATE'
        else 'DELETE'
    end,
    'version', coalesce(x.live.version, 0) + 1,
    'author', coalesce(w.author, x.live.author, w.app_id),
    'app_id', w.app_id,
    'puuid', x.live.uuid,
    'uuid', w.uuid,
    'txn_uuid', w.txn_uuid,
    'createdAt', coalesce(x.live.createdAt, w.at_ms),
    'updatedAt', w.at_ms,
    'rtcts', coalesce(x.live.rtcts, w.real_ms),
    'rtuts', w.real_ms,
    'author_txn', if(w.author is not null or x.live is null, w.txn, x.live.author_txn),
    'created_txn', coalesce(x.live.created_txn, w.txn),
    'purged_txn', if(x.code = 'PURGED' or (x.code = 'DELETED' and w.auto_purge), w.txn, null),
    'resync', w.resync,
    'content', case x.code
        when 'MERGED' then x.merged.content
        when 'DELETED' then x.live.content
        when 'PURGED' then x.live.content
        else w.content
    end
) as {{ features.state_type }})
{%- endmacro %}
