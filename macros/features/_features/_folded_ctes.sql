{#
    The outcomes of a run's writes, feature by feature. One row per feature with its key columns and

        head        the previous stored state, with the table's columns (all fields NULL if none)
        new_states  the states that the writes made, in order; a tombstone that was purged later
                    occurs twice, the last one applies
        outcomes    one entry per write

    and, if a write may be without history, what `_lasting_states` describes. `ends` are also there
    where states are trimmed.
#}
{% macro _folded_ctes(features, pending) %}
{{ dbt_history._log_ctes(features, pending) }}
{%- if features.on_branches %}

{{ dbt_history._branch_ctes(pending) }}
{%- endif %}

{{ dbt_history._fold_ctes(features, pending) }}
{%- endmacro %}


{#
    The writes of the log, and the columns by which they are folded: the key; with writes on
    branches the item, because what a write inherits may have been made in the same run.
#}
{% macro _writes_to_fold(features) %}
    {%- do return('on_branches' if features.on_branches else 'identified') -%}
{% endmacro %}


{% macro _folded_by(features) %}
    {%- do return(
        dbt_history._c_item(features) if features.on_branches else dbt_history._c_key(features)
    ) -%}
{% endmacro %}


{# The pending writes with everything that is known before their outcomes are. #}
{% macro _log_ctes(features, pending) %}
log as (
    select
        {%- for name in features.key %}
        {{ dbt_history._key_of_write(features, name) }} as {{ dbt_history._prefixed(name) }},
        {%- endfor %}
        {%- for meaning, column in dbt_history._write_columns().items() %}
        {{ dbt_history._write_column(features, meaning, column) }} as {{ meaning }},
        {%- endfor %}
        {%- if features.get('spaces') %}
        {{ dbt_history._removals_by_space(features.spaces, features.key) }} as removals,
        {%- endif %}
        cast(named_struct(
            {%- for name in features.payload %}
            'p{{ loop.index0 }}', {{ dbt_history._converted(
                dbt_history._quote(name), features.types_of_log[loop.index0],
                features.payload_types[loop.index0],
            ) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as {{ features.content_type }}) as content
    from {{ features.writes }}
    where {{ features.names.txn }} > {{ pending.after }}L
        and {{ features.names.txn }} <= {{ pending.last }}L
),

-- An option that applies to a whole transaction may be set by any of its writes.
transactions_of_log as (
    select
        *,
        case
            when bool_or(rolled_back) over transaction
                then named_struct(
                    'outcome', 'ROLLED_BACK', 'reason', 'the client rolled the transaction back'
                )
            when bool_or(app_id is null or app_id = '') over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction names no app_id')
            when bool_or(at is null) over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction has no time')
            when min(mode) over transaction <> max(mode) over transaction
                then named_struct('outcome', 'ERROR', 'reason', 'the transaction has two modes')
        end as txn_problem,
        unix_millis(min(at) over transaction) as at_ms
    from log
    window transaction as (partition by txn)
),

prepared as (
    select
        *,
        (true /* refused */) or txn_problem is not null as is_refused,
        txn * 1048576 + if(position between 0 and 1048575, position, 0) as i,
        coalesce(unix_millis(written_at), at_ms) as real_ms,
        least(
            greatest(date_from_unix_date(cast(floor(at_ms / 86400000) as int)), date'2000-01-01'),
            date'3023-12-31'
        ) as day,
        case
            when position is null or position not between 0 and 1048575 then 'ERROR:position'
            when not coalesce({{ dbt_history._known_action() }}, false) then 'ERROR:action'
            when keep_states < 1 then 'ERROR:keep_states'
        end as problem,
        case action
            when 'WRITE' then on_not_exists
            when 'UPDATE' then 'ERROR'
            when 'DELETE' then 'RETAIN'
            when 'PURGE' then 'RETAIN'
            else 'CREATE'
        end as if_absent,
        case action
            when 'WRITE' then on_exists
            when 'CREATE' then 'ERROR'
            when 'DELETE' then 'DELETE'
            when 'PURGE' then 'PURGE'
            else 'REPLACE'
        end as if_live
    from transactions_of_log
),

identified as (
    select
        *,
        {{ dbt_history._qualified_uuid('i', 'feature', features.database_id) | indent(8) }} as uuid,
        {{ dbt_history._qualified_uuid('txn', 'transaction', features.database_id) | indent(8) }}
            as txn_uuid
    from prepared
),
{%- endmacro %}


{#
    CTEs from the stored states to `folded` (`_folded_ctes`). Whether a write makes a state depends
    on the states that the writes before it made, so the writes of a feature are one array, in
    order, and one expression folds it:

        head      writes                     new_states             outcomes
        v1        UPDATE, DELETE, CREATE     v2, tombstone, v3      UPDATED, DELETED, CREATED

    With writes on branches the array has those of an item on all its branches; the result is one
    row per branch again (`folds_of_branches`).
#}
{% macro _fold_ctes(features, pending) %}
{%- set grouped = dbt_history._folded_by(features) -%}
{{ dbt_history._stored_ctes(features, pending) }}

writes_of_feature as (
    select
        {{ grouped | join(', ') }},
        array_sort(
            collect_list(named_struct(
                {%- for name in dbt_history._folded_fields(features, pending) %}
                '{{ name }}', {{ name }},
                {%- endfor %}
                'base', base_content,
                'content', content
            )),
            (one, other) -> case when one.i < other.i then -1 when one.i > other.i then 1 else 0 end
        ) as writes
    from based_writes
    group by {{ grouped | join(', ') }}
),

heads_of_writes as (
    select
        {% for name in grouped %}writes_of_feature.{{ name }}, {% endfor %}
        writes,
        {%- if dbt_history._reads_tombstones(features, pending) %}
        heads.tombstone,
        {%- endif %}
        heads.state as head
    from writes_of_feature
    left join heads
        on
        {%- for name in grouped %}
        writes_of_feature.{{ name }} <=> heads.{{ name }}{{ ' and' if not loop.last }}
        {%- endfor %}
),

-- The generator prevents the optimizer from duplicating the fold for every field that is read.
folds as (
    select
        heads_of_writes.*,
        folding.fold
    from heads_of_writes
    lateral view explode(array(
        {{ dbt_history._fold_expression(features, pending) | indent(8) }}
    )) folding as fold
),
{%- if features.on_branches %}

-- An item's branches, one row each.
folds_of_branches as (
    select
        {{ dbt_history._c_item(features) | join(', ') }},
        line.branch as {{ dbt_history._prefixed('branch') }},
        writes,
        get({{ dbt_history._of_branch('line', 'head') }}, 0) as head,
        named_struct(
            'new_states', {{ dbt_history._of_branch('line', 'fold.new_states') }},
            'outcomes', {{ dbt_history._of_branch('line', 'fold.outcomes') }}
        ) as fold
    from folds
    lateral view explode(array_distinct(transform(
        writes, w -> named_struct('branch', w.branch, 'fork', w.fork)
    ))) lines as line
),
{%- endif %}

folded as (
    select
        {{ dbt_history._c_key(features) | join(', ') }},
        head,
        {%- if dbt_history._may_lack_history(features) %}
        {{ dbt_history._lasting_states(features) | indent(8) }},
        {%- else %}
        fold.new_states as new_states,
        {%- endif %}
        {%- if dbt_history._sends_ends(features, pending) %}
        {{ dbt_history._ends_of_states(pending) | indent(8) }},
        {%- endif %}
        fold.outcomes as outcomes
    from {{ 'folds_of_branches' if features.on_branches else 'folds' }}
)
{%- endmacro %}


{#
    A write without history replaces the state before it; a deletion without history leaves no
    tombstone. So the states that stay depend on the write that ends them, not on the split of the
    log into runs:

        txn          1      2      3      4
        history      on     on     off    on
        states       [ v1 --)      [ v3 --)[ v4 --      v2 was in force from 2 to 3: it is gone

        new_states   those that stay
        off          the numbers of the writes without history, also of what was removed later
        replaced_from   where the stored states end, if the one in force is replaced, or if the
                        one that ends it does not stay
#}
{% macro _lasting_states(features) -%}
{%- set off = "transform(filter(writes, w -> w.history = 'off'"
    ~ (' or coalesce(w.txn <= array_max(w.removals), false)' if features.get('spaces') else '')
    ~ '), w -> w.i)' -%}
filter(
    fold.new_states,
    (state, place) -> case
        when state.action = 'DELETE' then not array_contains({{ off }}, state.i)
        else not coalesce(
            array_contains({{ off }}, try_element_at(fold.new_states, place + 2).i), false
        )
    end
) as new_states,
{{ off }} as off,
case
    when head.txn is not null and head.action <> 'DELETE'
        and array_contains({{ off }}, try_element_at(fold.new_states, 1).i)
        then head.txn
    when array_contains({{ off }}, try_element_at(fold.new_states, 2).i)
        or array_contains({{ off }}, try_element_at(fold.new_states, 1).i)
        then try_element_at(fold.new_states, 1).txn
end as replaced_from
{%- endmacro %}


{#
    Whether states are sent with their ends, because a removed state may leave a gap after them that
    the next start does not show.
#}
{% macro _sends_ends(features, pending) %}
    {%- do return(dbt_history._may_lack_history(features) or pending.trims) -%}
{% endmacro %}


{#
    The end of each state that the writes made, also before a gap. Where states are trimmed, also
    the end that the writes give the stored state: it may be sent again.
#}
{% macro _ends_of_states(pending) -%}
{%- set ends -%}
transform(
    fold.new_states,
    (state, place) -> named_struct(
        'i', state.i, 'until', try_element_at(fold.new_states, place + 2).txn
    )
)
{%- endset -%}
{%- if pending.trims -%}
concat(
    array(named_struct('i', head.i, 'until', try_element_at(fold.new_states, 1).txn)),
    {{ ends | indent(4) }}
) as ends
{%- else -%}
{{ ends }} as ends
{%- endif -%}
{%- endmacro %}


{% macro _key_of_write(features, name) %}
    {%- set column = dbt_history._quote(name) -%}
    {%- do return(
        'coalesce(' ~ column ~ ", 'main')" if features.branched and name | lower == 'branch'
            else column
    ) -%}
{% endmacro %}


{# A column of a write in its type; the option's default if the log has no value. #}
{% macro _write_column(features, meaning, column) %}
    {%- set value = 'cast(' ~ features.names.get(meaning, 'null') ~ ' as ' ~ column.type ~ ')' -%}
    {%- set defaults = {
        'mode': "'" ~ features.mode ~ "'", 'noop_updates': "'" ~ features.noop_updates ~ "'",
        'history': "'" ~ features.history ~ "'",
        'auto_purge': features.auto_purge | string | lower, 'rolled_back': 'false',
        'resync': 'false',
        'keep_states': features.keep_states, 'on_not_exists': "'CREATE'", 'on_exists': "'REPLACE'",
        'on_version_conflict': "'ERROR'", 'on_merge_conflict': "'ERROR'",
    } -%}
    {%- if defaults.get(meaning, '') is none -%} {%- do defaults.pop(meaning) -%} {%- endif -%}
    {%- if meaning == 'author' -%} {%- do return("nullif(" ~ value ~ ", '')") -%} {%- endif -%}
    {#- The case of a UUID does not count. -#}
    {%- if meaning in ['expected_uuid', 'base_uuid'] and meaning in features.names -%}
        {%- set value = 'lower(' ~ value ~ ')' -%}
    {%- endif -%}
    {#- Only a WRITE has a base. -#}
    {%- if meaning == 'base_uuid' and meaning in features.names -%}
        {%- do return(
            'if(cast(' ~ features.names.action ~ " as string) = 'WRITE', " ~ value ~ ', null)'
        ) -%}
    {%- endif -%}
    {%- if meaning == 'history' and features.get('spaces') -%}
        {%- do return(dbt_history._history_by_space(
            features.spaces, features.key, 'cast(' ~ features.names.txn ~ ' as bigint)',
            defaults.history,
        )) -%}
    {%- endif -%}
    {%- do return(
        'coalesce(' ~ value ~ ', ' ~ defaults[meaning] ~ ')' if meaning in defaults else value
    ) -%}
{% endmacro %}


{% macro _known_action() %}
    {%- do return(
        "action in ('CREATE', 'UPDATE', 'PUT', 'DELETE', 'PURGE', 'WRITE') and on_not_exists in"
            ~ " ('CREATE', 'RETAIN', 'ERROR')"
        ~ " and on_exists in ('REPLACE', 'RETAIN', 'DELETE', 'ERROR') and on_version_conflict in"
            ~ " ('ERROR', 'RETAIN', 'REPLACE', 'MERGE')"
        ~ " and on_merge_conflict in ('ERROR', 'RETAIN', 'REPLACE') and mode in ('all_or_nothing',"
            ~ " 'per_row')"
        ~ " and noop_updates in ('record', 'skip') and history in ('on', 'off')"
    ) -%}
{% endmacro %}


{# The uuid, if all its parts exist: a transaction without a time has none, and makes no states. #}
{% macro _qualified_uuid(object_id, type, database_id) %}
    {%- do return(dbt_history.uuid_of(object_id, 'day', type, database_id)) -%}
{% endmacro %}


{# The fields of a write that the fold uses. #}
{% macro _folded_fields(features, pending) %}
    {%- set more = ['removals'] if features.get('spaces') else [] -%}
    {%- if features.on_branches -%}
        {%- set more = more + ['branch', 'fork', 'lineage']
            + (['inherited'] if pending.states is not none else []) -%}
    {%- endif -%}
    {%- do return(more + [
        'i', 'txn', 'position', 'action', 'app_id', 'author', 'message', 'commit_json', 'at_ms',
        'real_ms', 'uuid', 'txn_uuid', 'expected_uuid', 'base_uuid',
        'if_absent', 'if_live', 'on_version_conflict', 'on_merge_conflict', 'mode', 'noop_updates',
        'auto_purge', 'history',
        'keep_states', 'resync', 'problem', 'txn_problem', 'is_refused',
    ]) -%}
{% endmacro %}


{#
    The stored data of the written features, without what the run itself adds:

        heads           the state in force after transaction `after`; for a purge also the tombstone
                        of a deleted feature, and where a write may be without history `tombstone`
        based_writes    the writes, with the content of the state that each names as its base
#}
{% macro _stored_ctes(features, pending) %}
{%- set inherits = features.on_branches and pending.states is not none -%}
{{ dbt_history._head_ctes(features, pending) }}
{%- if inherits %}

{{ dbt_history._inherited_ctes(features, pending) }}
{%- endif %}

based_writes as (
    select
        written.*,
        {%- if inherits %}
        inherited.inherited,
        {%- endif %}
        {%- if pending.has_merge and pending.states is not none %}
        if(stored.`i` is null, null, {{ dbt_history._stored_content(features) | indent(8) }})
            as base_content
        {%- else %}
        cast(null as {{ features.content_type }}) as base_content
        {%- endif %}
    from {{ dbt_history._writes_to_fold(features) }} as written
    {%- if inherits %}
    left join inherited
        on {{ dbt_history._same_item(features, 'inherited', 'written') }}
        and inherited.epoch = written.epoch
    {%- endif %}
    {%- if pending.has_merge and pending.states is not none %}
    left join {{ dbt_history._quoted_relation(pending.states) }} as stored
        on stored.`txn` <= {{ pending.after }}L
        and lower(stored.{{ dbt_history._quote(features.namespace) }}.`uuid`) = written.base_uuid
        and {{ dbt_history._same_feature(
            features, 'written', dbt_history._item(features) if features.on_branches else none,
        ) }}
        {%- if features.on_branches %}
        and {{ dbt_history._is_of_line('written', 'stored.`branch`', 'stored.`txn`') }}
        {%- endif %}
    {%- endif %}
),
{% endmacro %}


{#
    CTE `heads` (`_stored_ctes`): one row per feature that has a stored state, with writes on
    branches one per item, whose states are then an array, one per branch. Later states do not
    count, because `feature_outcomes` evaluates a log again on a newer table:

        after = 5       1          3               7
        stored          [ v1 ------)[ v2 ----------)[ v3       the head is v2: it ends after 5
#}
{% macro _head_ctes(features, pending) %}
{%- set key = dbt_history._c_key(features) + (['fork'] if features.on_branches else []) -%}
{%- set needs_tombstone = dbt_history._reads_tombstones(features, pending) -%}
{%- set state_type = 'array<' ~ features.state_type ~ '>' if features.on_branches
    else features.state_type -%}
{%- if pending.states is none %}
heads as (
    select
        {% for name in dbt_history._folded_by(features) %}{{ name }}, {% endfor %}
        {%- if needs_tombstone %}
        cast(null as {{ state_type }}) as tombstone,
        {%- endif %}
        cast(null as {{ state_type }}) as state
    from identified
    where false
),
{%- else %}
{#- On a branch, a deletion may hide an inherited state. #}
stored_heads as (
    {{ dbt_history._stored_heads(
        features, pending,
        'stored.`txn_next` is null or stored.`txn_next` > ' ~ pending.after ~ 'L'
            ~ (' or ' ~ dbt_history._is_tombstone(features, pending) if features.on_branches
                else ''),
    ) | indent(4) }}
    {%- if pending.has_purge and not features.on_branches %}

    union all

    -- Closed states are read only for a purge.
    {{ dbt_history._stored_heads(
        features, pending, dbt_history._is_tombstone(features, pending),
    ) | indent(4) }}
    {%- endif %}
),

-- Of a live state and earlier tombstones the newest one applies; a purge after `after` is ignored.
{{ 'heads_of_branches' if features.on_branches else 'heads' }} as (
    select
        {% for name in key %}{{ name }}, {% endfor %}
        {%- if needs_tombstone %}
        max_by(state, if(state.action = 'DELETE', state.i, null)) as tombstone,
        {%- endif %}
        max_by(state, state.i) as state
    from stored_heads
    group by {{ key | join(', ') }}
),
{%- if features.on_branches %}

heads as (
    select
        {% for name in dbt_history._c_item(features) %}{{ name }}, {% endfor %}
        {%- if needs_tombstone %}
        collect_list(tombstone) as tombstone,
        {%- endif %}
        collect_list(state) as state
    from heads_of_branches
    group by {{ dbt_history._c_item(features) | join(', ') }}
),
{%- endif %}
{%- endif %}
{% endmacro %}


{#
    The stored states of the written features that satisfy `kind`. On a branch only states since its
    fork count.
#}
{% macro _stored_heads(features, pending, kind) -%}
select
    {%- for name in features.key %}
    stored.{{ dbt_history._quote(name) }} as {{ dbt_history._prefixed(name) }},
    {%- endfor %}
    {%- if features.on_branches %}
    written.fork,
    {%- endif %}
    {{ dbt_history._stored_state(
        features, pending, 'written.fork' if features.on_branches else none,
    ) | indent(4) }} as state
from {{ dbt_history._quoted_relation(pending.states) }} as stored
{%- if features.on_branches %}
inner join (
    select distinct {{ dbt_history._c_key(features) | join(', ') }}, fork from on_branches
) as written
    on {{ dbt_history._same_feature(features, 'written') }}
    and stored.`txn` > written.fork
{%- else %}
left semi join
    {{ "(select * from identified where action = 'PURGE')" if '`action`' in kind
        else 'identified' }} as written
    on {{ dbt_history._same_feature(features, 'written') }}
{%- endif %}
where stored.`txn` <= {{ pending.after }}L
    and ({{ kind }})
{%- endmacro %}


{% macro _is_tombstone(features, pending) %}
    {%- do return(
        'stored.`txn_next` <= ' ~ pending.after ~ 'L and stored.'
            ~ dbt_history._quote(features.namespace) ~ ".`action` = 'DELETE'"
    ) -%}
{% endmacro %}
