{#
    The rules as one pass: the touched versions and the batch's rows of a key stand in one window, ordered along
    the time axis, and every row finds out there what becomes of it. One exchange, one sort.

        at          t1            t2     E           t3         t4        D
        stored      [ a ----------)[ b --------------------------------- open
        batch                            E earliest
                                         u update    U upsert             delete
        becomes     [ a ----------)[ b --)[ u -------)[ U ----------------)     '- - ' ends a gap before the next start

    Order at one instant: version id, then stored < upsert < update, then `_order`; a delete stands last.
    Rows out: one a stored version that the batch can reach and one a row of the batch's updates and upserts, with
        op        remove | close | replace | add | skip, NULL where nothing is to be done
        was_open, is_open   whether the key's version was, is in force
        match_*   identity of the stored row an operation is for (NULL for add and skip), c_* the row's new values
        earlier_end   of the stored end and the new one the earlier: up to there a close changes nothing
    `plan` gives the literals: `min_effective_at` (versions that ended a gap before it cannot matter) and `unmodified` (the columns to fill).
#}
{% macro _resolved_ctes(target, staged, columns, settings, plan) %}
{%- set convention = settings.convention -%}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set key = settings.key -%}
{%- set has_version_id = dbt_history._identity_columns(convention) | length > 1 -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
{%- set c_active = dbt_history._prefixed(convention.active) if convention.active else none -%}
{%- set c_id = dbt_history._prefixed(convention.version_id) if has_version_id else none -%}
{%- set is_open = dbt_history._is_open_prefixed(convention) -%}
{%- set filled = [] -%}
{%- for column in columns if column.name | lower in plan.unmodified and column.name | lower not in [convention.end | lower, (convention.active or '') | lower] -%}
    {%- do filled.append(column.name) -%}
{%- endfor -%}
{%- set fills_end = convention.end | lower in plan.unmodified -%}
{%- set fills_active = convention.active and convention.active | lower in plan.unmodified -%}
{%- set inserts = settings.update_without_base == 'insert' -%}
{%- set axis -%}
partition by {% for name in key %}{{ dbt_history._prefixed(name) }}{{ ', ' if not loop.last }}{% endfor %}
                order by at, kind = {{ kinds.delete_row }}{{ ', ' ~ c_id if has_version_id }}, kind, position
{%- endset -%}
batch as (
    {{ dbt_history._batch_rows(
        staged, columns, convention, '`_batch` = ' ~ plan.batch if plan.batch is not none and '_batch' in staged.names else none
    ) | indent(4) }}
),

history as (
    select
        {{ kinds.stored }} as kind,
        stored.{{ dbt_history._quote(convention.start) }} as at,
        cast(null as bigint) as position,
        cast(array() as array<string>) as unmodified
        {%- for column in columns %},
        stored.{{ dbt_history._quote(column.name) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from {{ dbt_history._quoted_relation(target) }} as stored
    left semi join batch
        on {% for name in key %}stored.{{ dbt_history._quote(name) }} = batch.{{ dbt_history._prefixed(name) }}{{ '\n        and ' if not loop.last }}{% endfor %}
    where {{ dbt_history._target_prune_predicate(convention, plan, 'stored') }}

    union all

    -- A SELECT that was evaluated again since the plan must not be applied.
    select
        if(evaluated_at <= {{ plan.evaluated_at }}L, kind, raise_error('dbt_history: evaluated again')) as kind,
        at,
        position,
        unmodified
        {%- for column in columns %},
        {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from batch
),

-- What each row sees around it: E (rule 1), the rows that follow, the stored version at the same place.
with_neighbours as (
    select
        *,
        min(if(kind = {{ kinds.earliest_start }}, at, null)) over (
            {{ axis | indent(4) }}
            rows between unbounded preceding and unbounded following
        ) as earliest,
        lead(if(kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}), at, null)) ignore nulls over axis as next_row,
        lead(if(kind <= {{ kinds.update_row }}, at, null)) ignore nulls over axis as next_known,
        lead(if(kind = {{ kinds.delete_row }}, at, null)) ignore nulls over axis as next_delete,
        lead(if(kind = {{ kinds.stored }}, at, null)) ignore nulls over axis as next_stored,
        last_value(if(kind = {{ kinds.stored }}, struct(at{% for column in columns %}, {{ dbt_history._prefixed(column.name) }}{% endfor %}), null), true) over (
            {{ axis | indent(4) }}
            rows between unbounded preceding and current row
        ) as stored
    from history
    window axis as (
        {{ axis | indent(4) }}
    )
),

-- Rule 3: a survivor is a base if it lasted, this batch's deletes included, until the first row of the batch after it.
with_bases as (
    select
        *,
        kind = {{ kinds.stored }} and (earliest is null or at < earliest) as survives,
        kind = {{ kinds.upsert_row }}{{ ' or kind = ' ~ kinds.update_row if inserts }} or (
            kind = {{ kinds.stored }}
            and (earliest is null or at < earliest)
            and next_row is not null
            and coalesce(
                least(
                    if({{ is_open }}, null, {{ c_end }}),
                    if({{ dbt_history._is_active_prefixed(convention) }} is not null and (next_known is null or next_delete < next_known), next_delete, null)
                ) >= {{ dbt_history._shift_by_gap('least(earliest, next_row)', convention) }},
                true
            )
        ) as is_base
    from with_neighbours
    where kind <> {{ kinds.earliest_start }}
),

-- Chain fill: a column that a row does not bring is the last one brought before it.
filled as (
    select
        *,
        {%- for name in filled %}
        last_value(
            if({{ dbt_history._supplies_column(name) }}, named_struct('v', {{ dbt_history._prefixed(name) }}), null), true
        ) over axis as {{ dbt_history._quote('f_' ~ name) }},
        {%- endfor %}
        {%- if fills_end %}
        last_value(
            if(
                {{ dbt_history._supplies_column(convention.end) }},
                named_struct('v', if({{ dbt_history._is_open_filled(convention, fills_active) }}, {{ c_end }}, {{ dbt_history._open_end(convention) }})),
                null
            ),
            true
        ) over axis as open_end,
        {%- endif %}
        kind = {{ kinds.update_row }} and not coalesce(max(is_base) over axis, false) as is_skipped
    from with_bases
    window axis as (
        {{ axis | indent(4) }}
        rows between unbounded preceding and current row
    )
),

-- Rule 5: of rows with one identity the last one wins; the next version seals, the next row of the batch cuts.
with_next_version as (
    select
        kind,
        at,
        earliest,
        survives,
        is_skipped,
        stored,
        next_delete,
        next_stored,
        lead(if(survives or (kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and not is_skipped), struct(at{{ ', ' ~ c_id ~ ' as id' if has_version_id }}), null)) ignore nulls
            over (
                {{ axis | indent(8) }}
            ) as next_version,
        lead(if(kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and not is_skipped, at, null)) ignore nulls over (
            {{ axis | indent(4) }}
        ) as next_begun
        {%- for column in columns %},
        {{ dbt_history._completed_column(column, convention, filled, fills_end, fills_active) | indent(8) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from filled
),

-- Rule 2 closes and clips at E, rule 6 seals at the next start, rule 6b cuts, rule 7 deletes; rule 8: never where the flag is NULL.
ended as (
    select
        *,
        {{ dbt_history._is_active_prefixed(convention) }} is not null as can_close,
        coalesce(next_version.at = at{{ ' and next_version.id <=> ' ~ c_id if has_version_id }}, false) as is_replaced,
        coalesce(kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and stored.at = at{{ ' and stored.' ~ c_id ~ ' <=> ' ~ c_id if has_version_id }}, false) as is_stored,
        if(next_version is null or next_delete < next_version.at, next_delete, null) as deleted_at,
        least(
            case
                when survives and earliest is not null and ({{ is_open }} or (coalesce(next_stored >= earliest, true) and {{ c_end }} >= earliest))
                    then {{ dbt_history._shift_by_gap('earliest', convention) }}
                when {{ is_open }} and next_version is not null then {{ dbt_history._shift_by_gap('next_version.at', convention) }}
                else {{ c_end }}
            end,
            -- A stored version ends before the rows of the batch, a row of the batch before any version.
            {{ dbt_history._shift_by_gap('if(kind = ' ~ kinds.stored ~ ', next_begun, next_version.at)', convention) }}
        ) as sealed_end,
        {{ is_open }} and not (survives and earliest is not null) and next_version is null as stays_open
    from with_next_version
    where kind <> {{ kinds.delete_row }}
),

final_versions as (
    select
        *,
        if(can_close, if(deleted_at is null, sealed_end, least(sealed_end, deleted_at)), {{ c_end }}) as final_end,
        stays_open and deleted_at is null as is_open
    from ended
),

resolved as (
    select
        kind,
        kind = {{ kinds.stored }} and {{ is_open }} as was_open,
        case
            when is_skipped then 'skip'
            when kind = {{ kinds.stored }} and not is_replaced then
                case when not survives then 'remove' when {{ dbt_history._period_changed(convention) }} then 'close' end
            when is_replaced then null
            when not is_stored then 'add'
            when not {{ dbt_history._rows_are_equal(dbt_history._without(columns, [convention.end, convention.active]), '', 'stored.') }} then 'replace'
            when {{ dbt_history._period_changed(convention, 'stored.') }} then 'close'
        end as op,
        not is_skipped and not is_replaced and (kind <> {{ kinds.stored }} or survives) and is_open as is_open,
        at,
        least(stored.{{ c_end }}, final_end) as earlier_end
        {%- for column in columns %},
        {{ dbt_history._final_column(column, convention) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    from final_versions
)
{%- endmacro %}


{# Whether a row brings the column: a base brings all, an update what it does not call unmodified. #}
{% macro _supplies_column(name) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- do return('if(kind = ' ~ kinds.update_row ~ ', not array_contains(unmodified, ' ~ dbt_history._string_literal(name | lower) ~ '), is_base)') -%}
{% endmacro %}


{# Only versions that end a gap before the batch's earliest time or later can be touched; literals, so that Delta prunes by them. #}
{% macro _target_prune_predicate(convention, plan, alias) %}
    {%- set end = alias ~ '.' ~ dbt_history._quote(convention.end) -%}
    {%- do return('(' ~ end ~ ' >= ' ~ dbt_history._literal(plan.bound, convention) ~ ' or ' ~ end ~ ' is null)') -%}
{% endmacro %}


{# In force until further notice, over prefixed columns. #}
{% macro _is_open_prefixed(convention) %}
    {%- set end = dbt_history._prefixed(convention.end) -%}
    {%- if convention.active -%} {%- do return('coalesce(' ~ dbt_history._prefixed(convention.active) ~ ', false)') -%}
    {%- elif convention.open_end is none -%} {%- do return('(' ~ end ~ ' is null)') -%}
    {%- else -%} {%- do return('coalesce(' ~ end ~ ' >= ' ~ dbt_history._open_end(convention) ~ ', true)') -%}
    {%- endif -%}
{% endmacro %}


{# The active flag; NULL means that the version is never closed. Where there is no flag, open or not. #}
{% macro _is_active_prefixed(convention) %}
    {%- do return(dbt_history._prefixed(convention.active) if convention.active else dbt_history._is_open_prefixed(convention)) -%}
{% endmacro %}


{# Whether a row, its flag filled, is open: a row that does not bring the flag is. #}
{% macro _is_open_filled(convention, fills_active) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- if fills_active -%}
        {%- do return('((kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, ' ~ dbt_history._string_literal(convention.active | lower) ~ ')) or ' ~ dbt_history._is_open_prefixed(convention) ~ ')') -%}
    {%- endif -%}
    {%- do return(dbt_history._is_open_prefixed(convention)) -%}
{% endmacro %}


{# A column's value once unmodified cells are filled. #}
{% macro _completed_column(column, convention, filled, fills_end, fills_active) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set c = dbt_history._prefixed(column.name) -%}
    {%- set is_kept = 'kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, ' ~ dbt_history._string_literal(column.name | lower) ~ ')' -%}
    {%- if column.name in filled -%}
        {%- do return('if(' ~ is_kept ~ ', ' ~ dbt_history._quote('f_' ~ column.name) ~ '.v, ' ~ c ~ ')') -%}
    {%- elif fills_end and column.name | lower == convention.end | lower -%}
        {%- do return('if(' ~ is_kept ~ ', if(open_end is null, ' ~ dbt_history._open_end(convention) ~ ', open_end.v), ' ~ c ~ ')') -%}
    {%- elif fills_active and column.name | lower == convention.active | lower -%}
        {%- do return('if(' ~ is_kept ~ ', true, ' ~ c ~ ')') -%}
    {%- endif -%}
    {%- do return(c) -%}
{% endmacro %}


{# A column's value in the table after the batch. #}
{% macro _final_column(column, convention) %}
    {%- if column.name | lower == convention.end | lower -%} {%- do return('final_end') -%}
    {%- elif convention.active and column.name | lower == convention.active | lower -%}
        {%- do return('if(can_close, is_open, ' ~ dbt_history._prefixed(column.name) ~ ')') -%}
    {%- endif -%}
    {%- do return(dbt_history._prefixed(column.name)) -%}
{% endmacro %}


{# Whether the end or the flag differs from the row's own, or from the stored row's. #}
{% macro _period_changed(convention, prefix='') %}
    {%- set changed = 'not (final_end <=> ' ~ prefix ~ dbt_history._prefixed(convention.end) ~ ')' -%}
    {%- if convention.active -%}
        {%- set flag = dbt_history._prefixed(convention.active) -%}
        {%- do return(changed ~ ' or not (if(can_close, is_open, ' ~ flag ~ ') <=> ' ~ prefix ~ flag ~ ')') -%}
    {%- endif -%}
    {%- do return(changed) -%}
{% endmacro %}
