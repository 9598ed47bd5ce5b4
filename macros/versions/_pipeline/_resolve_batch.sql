{#
    The rules in one pass. The affected versions and the staged rows of a key are ordered by time in
    one window, and the operation of each row follows from its neighbours.

        at          t1            t2     E           t3         t4        D
        stored      [ a ----------)[ b --------------------------------- open
        batch                            E earliest
                                         u update    U upsert             delete
        becomes     [ a ----------)[ b --)[ u -------)[ U ----------------)
                                          '- ends a gap before the next start

    A plan contains one batch or several (see `_plan_commits`). After `remaining` the batch numbers
    do not decrease along the axis, so the next row ends a version, whatever its batch.

    With `late_events` the deletions that no version shows are rows, too (`_late_events.sql`).

    `plan` supplies literals: the bound (versions that ended more than a gap before the first
    effective time are not affected) and `unmodified` (the columns to fill); and the counts of its
    rows by stage: the steps for a stage without rows are left out.

    The CTEs in their order, one macro each; those in brackets only where they are needed:

        history             the affected versions and the staged rows
        [with_known_ends]   and the ends of versions and deletes: late events, tombstones
        remaining           without the staged rows that an earliest start removes
        [with_valid_ends]   without the ends that are no deletions
        with_neighbours     what comes before and after each row
        [with_kept_columns] the columns that a row sent again leaves out
        filled              the unmodified cells of update rows
        with_next_version   the next version after each row
        with_ends           what ends it
        final_versions      where it ends
        [runs]              equal versions joined
        resolved            the operation of each row
#}
{% macro _resolved_ctes(batch) %}
{%- set pass = dbt_history._pass_of(batch) -%}
{{ dbt_history._history_ctes(batch) }}
{%- if pass.late_events %}

{{ dbt_history._known_ends_cte(batch) }}
{%- endif %}

{{ dbt_history._remaining_ctes(pass) }}
{%- if pass.late_events %}

{{ dbt_history._valid_ends_cte(pass.axis, pass.convention) }}
{%- endif %}

{{ dbt_history._with_neighbours_cte(pass) }}

{% if pass.known -%}
{{ dbt_history._kept_columns_cte(batch, pass.not_selected, pass.c_id) }}

{% endif -%}
{{ dbt_history._filled_ctes(pass) }}

{{ dbt_history._with_next_version_cte(pass) }}

{{ dbt_history._with_ends_cte(pass) }}

{{ dbt_history._final_versions_ctes(pass) }}

{% if pass.has_repeats -%}
{{ dbt_history._runs_ctes(batch, pass.axis) }}

{% endif -%}
{{ dbt_history._resolved_cte(pass) }}
{%- endmacro %}


{#
    What the CTEs of a pass have in common:
        batch, settings, plan, convention, columns      what is applied to which table, and how
        late_events, has_repeats    whether the pass has known ends, and repeats
        c_end, c_id     the end and the version id, prefixed; no `c_id` if the start identifies
        is_open         whether a row is open, SQL
        key_cells       the key columns, prefixed
        axis            the window that is the time axis of a key
        filled          columns that some update row leaves unmodified, without end and flag
        fills_end, fills_active     whether some update row leaves the end, or the flag, unmodified
        not_selected    columns that the SELECT lacks
        known           these, and the other columns that a row sent again may leave out
#}
{% macro _pass_of(batch) %}
    {% set settings, columns, plan = batch.settings, batch.columns, batch.plan %}
    {% set convention = settings.convention %}
    {% set key_cells = dbt_history._all_prefixed(settings.key) | join(', ') %}
    {% set c_id = dbt_history._prefixed(convention.version_id)
        if dbt_history._identity_columns(convention) | length > 1 else none %}
    {% set not_selected = dbt_history._columns_not_selected(batch.staged, columns) %}
    {% set known = (
        not_selected + dbt_history._columns_with_fields_not_said(batch)
            + dbt_history._columns_partly_said(batch)
    ) | unique | list %}
    {% do return({
        'batch': batch, 'settings': settings, 'plan': plan, 'convention': convention,
        'columns': columns, 'late_events': settings.late_events,
        'has_repeats': settings.get('has_repeats'),
        'c_end': dbt_history._prefixed(convention.end), 'c_id': c_id,
        'is_open': dbt_history._is_open_prefixed(convention), 'key_cells': key_cells,
        'axis': dbt_history._time_axis(key_cells, c_id, settings),
        'filled': dbt_history._filled_columns(columns, convention, plan),
        'fills_end': convention.end | lower in plan.unmodified,
        'fills_active': convention.active and convention.active | lower in plan.unmodified,
        'not_selected': not_selected, 'known': known,
    }) %}
{% endmacro %}


{#
    The rows of a key by time. At one instant: earliest start, version id, then stored < upsert <
    update, then `_order`; a delete comes last. An end comes before the versions that start there,
    or after them if the convention has a gap.
#}
{% macro _time_axis(key_cells, c_id, settings) %}
{%- set kinds = dbt_history._row_kinds() -%}
partition by {{ key_cells }}
                order by
                    at,
                    case kind
                        when {{ kinds.earliest_start }} then 0
                        {%- for end in [kinds.tombstone, kinds.known_end, kinds.deletion]
                            if settings.late_events %}
                        when {{ end }} then {{ 2 if settings.convention.gap else 0 }}
                        {%- endfor %}
                        when {{ kinds.delete_row }} then 3
                        else 1
                    end,
                    {{ c_id ~ ', ' if c_id }}kind, position
{%- endmacro %}


{#
    CTE `remaining`: the rows of `history` with `remains`, whether no earliest start removes the
    row. Stored rows, and tombstones, stay without it, because the MERGE has to remove them; staged
    rows that do not remain are left out.

    An earliest start of a later batch removes the rows of earlier batches at or after it:

        batch 1     E  [ x ----------- [ y -------- open
        batch 2                   E   [ z ---------- open       removes y, ends x
        becomes        [ x ------) [ z ---------- open
#}
{% macro _remaining_ctes(pass) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set rows = 'with_known_ends' if pass.late_events else 'history' -%}
{% if not pass.plan.earliest_start -%}
remaining as (
    select
        *,
        true as remains
    from {{ rows }}
),
{%- else -%}
-- Rule 1: the first earliest start after the row's own batch. Of the same batch only the first
-- stays.
reached as (
    select
        *,
        min(if(kind = {{ kinds.earliest_start }}, at, null)) over (
            partition by {{ pass.key_cells }}
            order by batch desc, kind = {{ kinds.earliest_start }} asc, at asc
            rows between unbounded preceding and 1 preceding
        ) as removed_from
    from {{ rows }}
),

-- The generator keeps the optimizer from copying the condition into every expression that uses it.
remaining as (
    select
        reached.*,
        flags.remains
    from reached
    lateral view explode(
        array(removed_from is null or {{ dbt_history._known_end_until(
            pass.convention,
        ) if pass.late_events else 'at' }} < removed_from)
    ) flags as remains
    where reached.kind {{ 'in (' ~ kinds.stored ~ ', ' ~ kinds.tombstone ~ ')' if pass.late_events
        else '= ' ~ kinds.stored }} or flags.remains
),
{%- endif %}
{%- endmacro %}


{#
    CTE `with_neighbours`: the rows of `remaining` (`with_valid_ends`), each with what comes after
    it on the axis, and the last stored version up to it, as it is stored:

                              u is the row
        stored    [ a -----------------[ b ----------       stored: a, next_stored: b
        batch                 u   D         U               next_delete: D, next_row: U

        next_row        the next upsert or update
        next_known      the start of the next version, stored or of the plan
        next_earliest, next_stored, next_delete, next_end     the next row of that kind
        known           of the last stored version, the columns in `pass.known`
#}
{% macro _with_neighbours_cte(pass) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set cells = dbt_history._all_prefixed(pass.columns | map(attribute='name')) -%}
{%- set stored_cells = 'raw.' ~ cells | join(', raw.') if pass.has_repeats
    else cells | join(', ') -%}
with_neighbours as (
    select
        *,
        {%- if pass.plan.updates %}
        lead(
            if(kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}), struct(at, batch), null)
        ) ignore nulls over axis as next_row,
        lead(if(kind <= {{ kinds.update_row }} and remains, at, null)) ignore nulls over axis
            as next_known,
        {%- endif %}
        {%- if pass.plan.earliest_start %}
        lead(if(kind = {{ kinds.earliest_start }}, struct(at, batch), null)) ignore nulls over axis
            as next_earliest,
        lead(if(kind = {{ kinds.stored }} and remains, at, null)) ignore nulls over axis
            as next_stored,
        {%- else %}
        if(false, struct(at, batch), null) as next_earliest,
        cast(null as {{ pass.convention.type }}) as next_stored,
        {%- endif %}
        {%- if pass.plan.deletes %}
        lead(
            if(kind = {{ kinds.delete_row }}, struct(at, batch, {{ pass.c_end }} as end_at), null)
        ) ignore nulls over axis as next_delete,
        {%- else %}
        if(false, struct(at, batch, {{ pass.c_end }} as end_at), null) as next_delete,
        {%- endif %}
        {%- if pass.late_events %}
        lead(
            if(kind in ({{ kinds.tombstone }}, {{ kinds.known_end }}) and remains, at, null)
        ) ignore nulls over axis as next_end,
        {%- endif %}
        last_value(if(kind = {{ kinds.stored }}, struct(at, {{ stored_cells }}), null), true) over (
            {{ pass.axis | indent(4) }}
            rows between unbounded preceding and current row
        ) as stored
        {%- if pass.known %},
        last_value(
            if(
                kind = {{ kinds.stored }},
                struct({{ (['at'] + ([pass.c_id] if pass.c_id else [])
                    + dbt_history._all_prefixed(pass.known)) | join(', ') }}),
                null
            ),
            true
        ) over (
            {{ pass.axis | indent(4) }}
            rows between unbounded preceding and current row
        ) as known
        {%- endif %}
    from {{ 'with_valid_ends' if pass.late_events else 'remaining' }}
    window axis as (
        {{ pass.axis | indent(4) }}
    )
),
{%- endmacro %}


{#
    CTE `filled`: the rows of `with_neighbours` without the earliest starts, each with `is_skipped`,
    whether it is an update row without a base. Where update rows leave columns unmodified, with the
    values to fill in: `f_*`, and `open_end`.
#}
{% macro _filled_ctes(pass) %}
{%- set convention, plan = pass.convention, pass.plan -%}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set neighbours = 'with_kept_columns' if pass.known else 'with_neighbours' -%}
{% if not plan.updates -%}
-- A constant would let the optimizer join both windows, and derive conditions without end.
filled as (
    select
        {{ neighbours }}.*,
        flags.is_skipped
    from {{ neighbours }}
    lateral view explode(array(false)) flags as is_skipped
    {%- if plan.earliest_start %}
    where kind <> {{ kinds.earliest_start }}
    {%- endif %}
),
{%- else -%}
with_bases as (
    select
        *,
        {{ dbt_history._base_state(pass.batch) | indent(8) }} as base_state,
        coalesce(
            next_delete.batch < next_row.batch and next_delete.at < next_row.at, false
        ) as is_deleted_before
    from {{ neighbours }}
    where kind <> {{ kinds.earliest_start }}
),

-- Chain fill: a column that a row does not supply has the last value supplied before it.
filled as (
    select
        *,
        {%- for name in pass.filled %}
        last_value(
            if(
                not base_state or {{ dbt_history._supplies_column(name) }},
                named_struct('v', if(base_state is false, null, {{ dbt_history._prefixed(name) }})),
                null
            ),
            true
        ) over axis as {{ dbt_history._quote('f_' ~ name) }},
        {%- endfor %}
        {%- if pass.fills_end %}
        last_value(
            if(
                not base_state or {{ dbt_history._supplies_column(convention.end) }},
                named_struct('v', if(
                    base_state is not false and not is_deleted_before
                        and {{ dbt_history._is_open_filled(convention, pass.fills_active) }},
                    {{ pass.c_end }},
                    {{ dbt_history._open_end(convention) }}
                )),
                null
            ),
            true
        ) over axis as open_end,
        {%- endif %}
        {%- if pass.settings.update_without_base == 'insert' %}
        false as is_skipped
        {%- else %}
        kind = {{ kinds.update_row }}
            and not coalesce(last_value(base_state, true) over axis, false) as is_skipped
        {%- endif %}
    from with_bases
    window axis as (
        {{ pass.axis | indent(4) }}
        rows between unbounded preceding and 1 preceding
    )
),
{%- endif %}
{%- endmacro %}


{#
    CTE `with_next_version`: the rows of `filled` with their columns filled (`c_*`), each with
        next_version    the next row that makes a version, stored or of the batch
        next_begun      the start of the next such row of the batch
#}
{% macro _with_next_version_cte(pass) %}
{%- set kinds = dbt_history._row_kinds() -%}
-- Rule 5: of rows with one identity the last one counts.
with_next_version as (
    select
        kind,
        batch,
        at,
        remains,
        is_skipped,
        stored,
        next_earliest,
        next_delete,
        next_stored,
        position,
        {%- if pass.late_events %}
        next_end,
        {%- endif %}
        lead(
            if(
                remains and not is_skipped and kind <= {{ kinds.update_row }},
                struct(at, batch{{ ', ' ~ pass.c_id ~ ' as id' if pass.c_id }}),
                null
            )
        ) ignore nulls
            over (
                {{ pass.axis | indent(8) }}
            ) as next_version,
        lead(
            if(
                kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and not is_skipped,
                at,
                null
            )
        ) ignore nulls over (
            {{ pass.axis | indent(4) }}
        ) as next_begun
        {%- for column in pass.columns %},
        {{ dbt_history._completed_column(
            column, pass.convention, pass.filled, pass.fills_end, pass.fills_active,
        ) | indent(8) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from filled
),
{%- endmacro %}


{#
    CTE `with_ends`: the rows of `with_next_version` without the deletes, each with what ends it:
        can_close       whether it has a flag, or needs none (rule 8)
        is_replaced     whether the next version has the same identity (rule 5)
        is_stored       whether it has the identity of a stored version
        ended_from      the earliest start of a later batch that ends it
        deleted         the next delete, if it comes before the next version
        known_end       with `late_events`: the known end that ends it
#}
{% macro _with_ends_cte(pass) %}
{%- set convention = pass.convention -%}
{%- set kinds = dbt_history._row_kinds() -%}
-- What ends a version: an earliest start of a later batch, a delete, the next version.
with_ends as (
    select
        *,
        {{ dbt_history._is_active_prefixed(convention) }} is not null as can_close,
        coalesce(
            next_version.at = at{{ ' and next_version.id <=> ' ~ pass.c_id
                if pass.c_id }}, false
        ) as is_replaced,
        coalesce(
            kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})
                and stored.at = at{{ ' and stored.' ~ pass.c_id ~ ' <=> ' ~ pass.c_id
                    if pass.c_id }},
            false
        ) as is_stored,
        if(remains and next_earliest.batch > batch, next_earliest, null) as ended_from,
        if(next_version is null or next_delete.at < next_version.at, next_delete, null) as deleted
        {%- if pass.late_events %},
        {{ dbt_history._known_end_column() | indent(8) }}
        {%- endif %}
    from with_next_version
    {%- if pass.plan.deletes %}
    where kind <> {{ kinds.delete_row }}
    {%- endif %}
),
{%- endmacro %}


{#
    CTE `final_versions`: the rows of `with_ends`, each with `final_end` and `is_open`, its end and
    whether it is open after the plan:

        at          t1             t2           E (later batch)
        rows        [ a ---------- [ b ---------|-------------- open
        becomes     [ a ----------)[ b --------)
                                  '- t2 - gap  '- E - gap
#}
{% macro _final_versions_ctes(pass) %}
{%- set convention, c_end, is_open = pass.convention, pass.c_end, pass.is_open -%}
{%- set kinds = dbt_history._row_kinds() -%}
-- Rules 2, 6, 6b and 7 in the order of their batches; rule 8: none of them where the flag is NULL.
ended as (
    select
        *,
        least(
            case
                when deleted.batch < coalesce(ended_from.batch, next_version.batch) then {{ c_end }}
                when ended_from is not null
                    and (
                        {{ is_open }}
                            or (
                                coalesce(next_stored >= ended_from.at, true)
                                    and {{ c_end }} >= ended_from.at
                            )
                    )
                    then {{ dbt_history._shift_by_gap('ended_from.at', convention) }}
                when {{ is_open }} and next_version is not null
                    then {{ dbt_history._shift_by_gap('next_version.at', convention) }}
                else {{ c_end }}
            end,
            -- A stored version ends before staged rows, a staged row before any version.
            {{ dbt_history._shift_by_gap(
                'if(kind = ' ~ kinds.stored ~ ', next_begun, next_version.at)', convention,
            ) }},
            deleted.end_at{{ ',
            known_end' if pass.late_events }}
        ) as new_end,
        {{ is_open }} and ended_from is null and next_version is null
            and deleted is null{{ ' and known_end is null' if pass.late_events }} as is_open
    from with_ends
),

final_versions as (
    select
        *,
        if(can_close, new_end, {{ c_end }}) as final_end
        {%- if pass.late_events %},
        {{ dbt_history._before_column(pass.axis, c_end) | indent(8) }}
        {%- endif %}
    from ended
),
{%- endmacro %}


{#
    CTE `resolved`: one row for each stored version that the plan can affect and for each update or
    upsert row (with `late_events` also for each end), from `final_versions` or `runs`:
        op        remove | close | replace | add | skip, NULL where nothing changes
        was_open, is_open   whether the version is open before and after the plan
        c_*       the new values
        earlier_end   the smaller of the stored end and the new one: a close changes nothing before
                      it
#}
{% macro _resolved_cte(pass) %}
{%- set convention, columns = pass.convention, pass.columns -%}
{%- set c_end, is_open = pass.c_end, pass.is_open -%}
{%- set kinds = dbt_history._row_kinds() -%}
resolved as (
    select
        kind,
        kind = {{ kinds.stored }} and {{ is_open }} as was_open,
        case
            {%- if pass.late_events %}
            when kind = {{ kinds.tombstone }}
                then if(remains and {{ dbt_history._needs_tombstone(convention) }}, null, 'remove')
            when kind > {{ kinds.update_row }}
                then if({{ dbt_history._needs_tombstone(convention) }}, 'add', null)
            {%- endif %}
            when is_skipped then 'skip'
            {%- if pass.has_repeats %}
            when kind = {{ kinds.stored }} and not is_replaced and not remains then 'remove'
            {%- else %}
            when kind = {{ kinds.stored }} and not is_replaced then
                case
                    when not remains then 'remove'
                    when {{ dbt_history._period_changed(convention) }} then 'close'
                end
            {%- endif %}
            when is_replaced then null
            when not is_stored then 'add'
            when not {{ dbt_history._rows_are_equal(
                dbt_history._without(columns, [convention.end, convention.active]), '', 'stored.',
            ) }}
                then 'replace'
            when {{ dbt_history._period_changed(convention, 'stored.') }} then 'close'
        end as op,
        {{ 'kind <= ' ~ kinds.update_row ~ ' and ' if pass.late_events -}}
        not is_skipped and not is_replaced and remains and is_open as is_open,
        {% if pass.late_events -%}
        if(kind > {{ kinds.update_row }}, {{ dbt_history._shift_by_gap(
            c_end, convention, '+',
        ) }}, at) as at,
        {%- else -%}
        at,
        {%- endif %}
        least(stored.{{ c_end }}, final_end) as earlier_end
        {%- for column in columns %},
        {{ dbt_history._final_column(column, pass.settings) }}
            as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from {{ 'runs' if pass.has_repeats else 'final_versions' }}
)
{%- endmacro %}


{#
    CTEs `batch`, the staged rows of the plan, and `history`, these and the versions that they can
    affect.
#}
{% macro _history_ctes(batch) %}
{%- set convention, columns, plan = batch.settings.convention, batch.columns, batch.plan -%}
{%- set kinds = dbt_history._row_kinds() -%}
batch as (
    {{ dbt_history._batch_rows(
        batch.staged, columns, batch.settings, dbt_history._batch_filter(plan, batch.staged),
    ) | indent(4) }}
),

{% if batch.settings.get('has_repeats') -%}
{{ dbt_history._stored_changes_ctes(batch) }}

{% endif -%}
history as (
    select
        {{ kinds.stored }} as kind,
        -1L as batch,
        {%- if batch.settings.get('has_repeats') %}
        at,
        cast(null as bigint) as position,
        cast(array() as array<string>) as unmodified,
        raw,
        {{ dbt_history._all_prefixed(columns | map(attribute='name')) | join(', ') }}
    from stored_changes
        {%- else %}
        stored.{{ dbt_history._quote(convention.start) }} as at,
        cast(null as bigint) as position,
        cast(array() as array<string>) as unmodified
        {%- for column in columns %},
        stored.{{ dbt_history._quote(column.name) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    {{ dbt_history._from_affected_versions(batch) | indent(4) }}
        {%- endif %}

    union all

    -- A SELECT that was evaluated again since the plan must not be applied.
    select
        if(
            evaluated_at <= {{ plan.evaluated_at }}L,
            kind,
            raise_error('dbt_history: evaluated again')
        ) as kind,
        coalesce(batch, 0L) as batch,
        at,
        position,
        unmodified
        {%- if batch.settings.get('has_repeats') %},
        null as raw
        {%- endif %}
        {%- for column in columns %},
        {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from batch
),
{%- endmacro %}


{#
    CTE `with_kept_columns`: a row that sends a version of the table again says nothing about a
    column that the SELECT lacks, so the version keeps its value; and so do the fields of a struct,
    and the columns that the row itself names (`_partly_said_columns`). `known` is the last stored
    version up to the row.

        at         3            5             7
        stored     [ a, Bonn --)[ b, Ulm ---- open
        batch      a            b             c       the SELECT lacks the city
        becomes    [ a, Bonn --)[ b, Ulm ----)[ c, NULL ---- open
#}
{% macro _kept_columns_cte(batch, not_selected, c_id) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set names = [] -%}
{%- for name in not_selected -%}
    {%- do names.append(dbt_history._string_literal(name | lower)) -%}
{%- endfor -%}
{%- set kept = {} -%}
{%- for cell in dbt_history._all_prefixed(not_selected) -%}
    {%- do kept.update({cell: 'known.' ~ cell}) -%}
{%- endfor -%}
{%- for column in batch.columns if column.name in dbt_history._columns_with_fields_not_said(batch)
    -%}
    {%- set cell = dbt_history._prefixed(column.name) -%}
    {%- do kept.update({cell: dbt_history._kept_fields(
        cell, 'known.' ~ cell, column.type, batch.staged.said[column.name],
    )}) -%}
{%- endfor -%}
{%- for name in dbt_history._columns_partly_said(batch) -%}
    {%- set cell = dbt_history._prefixed(name) -%}
    {%- do kept.update({cell: 'if(array_contains(unmodified, '
        ~ dbt_history._string_literal(name | lower) ~ '), known.' ~ cell ~ ', '
        ~ kept.get(cell, cell) ~ ')'}) -%}
{%- endfor -%}
with_kept_columns as (
    select
        * except (known, is_sent_again{{ ', unmodified' if names }}, {{ kept.keys() | join(', ') }})
        {%- if names %},
        if(
            is_sent_again,
            array_except(unmodified, array({{ names | join(', ') }})),
            unmodified
        ) as unmodified
        {%- endif %}
        {%- for cell, value in kept.items() %},
        if(is_sent_again, {{ value }}, {{ cell }}) as {{ cell }}
        {%- endfor %}
    from (
        select
            *,
            coalesce(
                kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})
                    and known.at = at{{ ' and known.' ~ c_id ~ ' <=> ' ~ c_id if c_id }},
                false
            ) as is_sent_again
        from with_neighbours
    ) as neighbours
),
{%- endmacro %}


{# The columns whose structs have fewer fields in the SELECT than in the table. #}
{% macro _columns_with_fields_not_said(batch) %}
    {% do return((batch.staged.get('said') or {}).keys() | list) %}
{% endmacro %}


{# The columns of the table that rows of the batch do not say, though the SELECT has them. #}
{% macro _columns_partly_said(batch) %}
    {% set names = [] %}
    {% for column in batch.columns
        if column.name | lower in (batch.settings.get('partly_said') or []) %}
        {% do names.append(column.name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{# The condition for the staged rows of a plan; none if the SELECT has no batch numbers. #}
{% macro _batch_filter(plan, staged) %}
    {% if plan.batch is none or '_batch' not in staged.names %}
        {% do return(none) %}
    {% elif plan.first_batch == plan.batch %}
        {% do return('`_batch` = ' ~ plan.batch) %}
    {% endif %}
    {% do return('`_batch` between ' ~ plan.first_batch ~ ' and ' ~ plan.batch) %}
{% endmacro %}


{#
    Rule 3: what a row is for the update rows after it: true, a base; false, no base, and no row
    before it is one; NULL, neither. A version of an earlier batch, or of the table, is a base if it
    lasts until the earlier of the next earliest start (E) and the start of the next row.

        x, end at D    [-----------D   E        u            x ended before E - gap: u has no base

    A row of an earlier batch was ended also by the stored version that follows it (rules 6, 6b),
    before the update was applied. `next_known` is the start of that version, or of the next row:

        stored         [ a ------)[ b ---D                   the record was deleted at D
        batch 1        [ a2 ------------------ open          a2 ended at the start of b: u has no
        batch 2                                 u            base
#}
{% macro _base_state(batch) %}
{%- set convention, plan = batch.settings.convention, batch.plan -%}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set keeps_end = 'kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, '
    ~ dbt_history._string_literal(convention.end | lower) ~ ')' -%}
{%- set fills_active = convention.active and convention.active | lower in plan.unmodified -%}
{%- set can_close = dbt_history._is_active_prefixed(convention) ~ ' is not null' -%}
{%- if fills_active -%}
    {%- set can_close = '(' ~ can_close ~ ' or kind = ' ~ kinds.update_row
        ~ ' and array_contains(unmodified, '
        ~ dbt_history._string_literal(convention.active | lower) ~ '))' -%}
{%- endif -%}
{%- set lasts -%}
(
    coalesce(
        least(
            if(
                {{ keeps_end }} or {{ dbt_history._is_open_filled(convention, fills_active) }},
                null,
                {{ dbt_history._prefixed(convention.end) }}
            ),
            if(
                {{ can_close }} and (next_known is null or next_delete.at < next_known),
                next_delete.end_at,
                null
            )
            {%- if plan.get('parts') %},
            if(
                kind <> {{ kinds.stored }} and {{ can_close }},
                {{ dbt_history._shift_by_gap('next_known', convention) }},
                null
            )
            {%- endif %}
        ) >= {{ dbt_history._shift_by_gap('least(next_earliest.at, next_row.at)', convention) }},
        true
    )
    and not coalesce(
        {{ can_close }} and next_earliest.at <= next_row.at
            and next_earliest.batch < next_row.batch,
        false
    )
)
{%- endset -%}
case
    when kind = {{ kinds.stored }} and (not remains or next_row is null) then null
    when kind <= {{ kinds.update_row }} and next_row.batch > batch and not {{ lasts | indent(4) }}
        then if(kind = {{ kinds.stored }}, null, false)
    when kind in (
        {{ kinds.stored }},
        {{ kinds.upsert_row }}{{ ', ' ~ kinds.update_row
            if batch.settings.update_without_base == 'insert' }}
    )
        then true
end
{%- endmacro %}


{# The columns that some update row of the plan leaves unmodified, without end and flag. #}
{% macro _filled_columns(columns, convention, plan) %}
    {% set names = [] %}
    {% for column in columns
        if column.name | lower in plan.unmodified
            and column.name | lower not in [
                convention.end | lower, (convention.active or '') | lower,
            ] %}
        {% do names.append(column.name) %}
    {% endfor %}
    {% do return(names) %}
{% endmacro %}


{#
    Whether a row supplies the column: a base supplies all, an update those not in `unmodified`.
#}
{% macro _supplies_column(name) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- do return(
        'if(kind = ' ~ kinds.update_row ~ ', not array_contains(unmodified, '
            ~ dbt_history._string_literal(name | lower) ~ '), base_state)'
    ) -%}
{% endmacro %}


{# Whether a row is open after filling: a row that does not supply the flag is. #}
{% macro _is_open_filled(convention, fills_active) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- if fills_active -%}
        {%- do return(
            '((kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, '
                ~ dbt_history._string_literal(convention.active | lower) ~ ')) or '
                ~ dbt_history._is_open_prefixed(convention) ~ ')'
        ) -%}
    {%- endif -%}
    {%- do return(dbt_history._is_open_prefixed(convention)) -%}
{% endmacro %}


{# A column's value after the unmodified cells are filled. #}
{% macro _completed_column(column, convention, filled, fills_end, fills_active) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set c = dbt_history._prefixed(column.name) -%}
    {%- set is_kept = 'kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, '
        ~ dbt_history._string_literal(column.name | lower) ~ ')' -%}
    {%- if column.name in filled -%}
        {%- do return(
            'if(' ~ is_kept ~ ', ' ~ dbt_history._quote('f_' ~ column.name) ~ '.v, ' ~ c ~ ')'
        ) -%}
    {%- elif fills_end and column.name | lower == convention.end | lower -%}
        {%- do return(
            'if(' ~ is_kept ~ ', if(open_end is null, ' ~ dbt_history._open_end(convention)
                ~ ', open_end.v), ' ~ c ~ ')'
        ) -%}
    {%- elif fills_active and column.name | lower == convention.active | lower -%}
        {%- do return('if(' ~ is_kept ~ ', true, ' ~ c ~ ')') -%}
    {%- endif -%}
    {%- do return(c) -%}
{% endmacro %}


{# A column's value in the table after the batch. #}
{% macro _final_column(column, settings) %}
    {%- set convention = settings.convention -%}
    {%- if settings.late_events -%}
        {%- set of_version = dbt_history._final_column(column, dict(settings, late_events=false))
        -%}
        {%- do return(
            of_version if column.name | lower in settings.key | map('lower')
                else 'if(kind <= ' ~ dbt_history._row_kinds().update_row ~ ', ' ~ of_version ~ ', '
                    ~ dbt_history._tombstone_cell(column, convention) ~ ')'
        ) -%}
    {%- endif -%}
    {%- if column.name | lower == convention.end | lower -%} {%- do return('final_end') -%}
    {%- elif convention.active and column.name | lower == convention.active | lower -%}
        {%- do return('if(can_close, is_open, ' ~ dbt_history._prefixed(column.name) ~ ')') -%}
    {%- endif -%}
    {%- do return(dbt_history._prefixed(column.name)) -%}
{% endmacro %}


{# Whether the end or the flag differs from the row's own, or from the stored row's. #}
{% macro _period_changed(convention, prefix='') %}
    {%- set changed = 'not (final_end <=> ' ~ prefix ~ dbt_history._prefixed(convention.end)
        ~ ')' -%}
    {%- if convention.active -%}
        {%- set flag = dbt_history._prefixed(convention.active) -%}
        {%- do return(
            changed ~ ' or not (if(can_close, is_open, ' ~ flag ~ ') <=> ' ~ prefix ~ flag ~ ')'
        ) -%}
    {%- endif -%}
    {%- do return(changed) -%}
{% endmacro %}


{# The rules of a plan, rendered once for all statements that read the same table. #}
{% macro _resolved(batch) %}
    {% set place = dbt_history._quoted_relation(batch.get('place') or batch.target) %}
    {% set known = batch.rendered %}
    {% if place not in known %}
        {% do known.update({place: dbt_history._resolved_ctes(batch)}) %}
    {% endif %}
    {% do return(known[place]) %}
{% endmacro %}
