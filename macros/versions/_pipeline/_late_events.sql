{#
    Rule 7b: with `late_events`, upserts and deletes may arrive in any order. The ends of stored
    versions are rows on the time axis of the rules (`known_end`), which end the staged rows that
    start before them:

        at          3              6           10
        stored      [ a -----------------------)
        known end                              |
        batch              b upsert            |
        becomes     [ a --)[ b ----------------)

    A deletion that no version shows is stored as a tombstone: an empty version without values,
    which no reader finds, because it contains no instant.

        at          3              6           10
        stored      [ a -----------------------)
        batch                      delete
        becomes     [ a -----------)           |   tombstone: start 10, end 10 - gap

    If a version that ends there arrives, the tombstone is removed. So the table does not depend on
    the order of arrival (docs/decisions/0098-tombstones.md).
#}


{#
    Adds to the settings what the SELECT says by the comments of `batch_rows`, where the model does
    not say it: `late_events`, `update_without_base`, and `tracked` (see `_row_options`); and
    `has_events`: whether its deletions are events (see `_batch_rows`).
#}
{% macro _with_event_options(settings, select_sql, caller_name) %}
    {% set found = dbt_history._event_options(select_sql) %}
    {% set options = found[0] if found else {} %}
    {% set late_events = settings.late_events if settings.late_events is not none
        else found != [] and dbt_history._identity_columns(settings.convention) | length == 1 %}
    {% set problems = [] %}
    {% if found | length > 1 %}
        {% do problems.append('several batch_rows with different options: ' ~ tojson(found)) %}
    {% endif %}
    {% if options.get('tracked') and not late_events %}
        {% do problems.append(
            'merge_equal, track_columns and except of batch_rows need late_events'
        ) %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the options of batch_rows do not fit the model; nothing was written',
            got='\n    ' ~ problems | join('\n    '), node=model.unique_id,
            way_out='give all batch_rows of the model the same options' if found | length > 1
                else 'set late_events: true, or leave out these options',
        )) %}
    {% endif %}
    {% do return(dict(
        settings,
        late_events=late_events,
        has_events=late_events or found != [],
        tracked=settings.get('tracked') or options.get('tracked'),
        update_without_base=settings.update_without_base
            or ('insert' if options.get('fills') else 'skip'),
    )) %}
{% endmacro %}


{# The different options of the `batch_rows` in a SELECT; empty if it has none. #}
{% macro _event_options(select_sql) %}
    {% set found = [] %}
    {% for options in dbt_history._notes('plain_events', select_sql) if options not in found %}
        {% do found.append(options) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# In the SQL of `batch_rows`, also if an ephemeral model contains it. #}
{% macro _plain_events_comment(options) %}
    {%- do return(dbt_history._note('plain_events', options or {})) -%}
{% endmacro %}


{#
    CTE `with_known_ends`: a closed version has a second row at its end, a tombstone only this one.
#}
{% macro _known_ends_cte(batch) %}
{%- set convention, kinds = batch.settings.convention, dbt_history._row_kinds() -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
{%- set is_tombstone -%}
kind = {{ kinds.stored }} and {{ dbt_history._is_tombstone_row(
    batch.columns, batch.settings.key, convention, is_prefixed=true,
) }}
{%- endset -%}
with_known_ends as (
    select
        history.* except (kind, at),
        if(points.is_end, {{ kinds.known_end }}, kind) as kind,
        if(points.is_end, {{ c_end }}, at) as at,
        points.is_end and {{ is_tombstone }} as is_tombstone
    from history
    lateral view explode(case
        when {{ is_tombstone }} then array(true)
        when kind in ({{ kinds.stored }}, {{ kinds.upsert_row }})
            and {{ dbt_history._has_ended_prefixed(convention) }}
            then array(false, true)
        else array(false)
    end) points as is_end
),
{%- endmacro %}


{# CTE `with_valid_ends`: an end is no deletion if a later stored version starts before it. #}
{% macro _valid_ends_cte(axis, convention) %}
{%- set kinds = dbt_history._row_kinds() -%}
with_stored_starts as (
    select
        *,
        last_value(if(kind = {{ kinds.stored }} and remains, at, null), true) over (
            {{ axis | indent(4) }}
            rows between unbounded preceding and current row
        ) as stored_start
    from remaining
),

with_valid_ends as (
    select *
    from with_stored_starts
    where kind <> {{ kinds.known_end }} or is_tombstone
        or not coalesce(stored_start > {{ dbt_history._prefixed(convention.start) }}, false)
),
{%- endmacro %}


{# The point up to which a row is removed by an earliest start: a known end with its gap. #}
{% macro _known_end_until(convention) %}
    {%- set until = dbt_history._shift_by_gap('at', convention, '+') -%}
    {%- do return(
        'at' if until == 'at'
            else 'if(kind = ' ~ dbt_history._row_kinds().known_end ~ ', ' ~ until ~ ', at)'
    ) -%}
{% endmacro %}


{#
    Columns of `with_ends`:
        known_end   the known end that ends a staged row: the next one before the next version
        before      for deletions: the last version or deletion before, and when it ends if no later
                    row ends it
#}
{% macro _late_event_columns(convention, axis, can_close) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
if(
    kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})
        and (next_version is null or next_end < next_version.at),
    next_end,
    null
) as known_end,
last_value(
    if(
        remains and not is_skipped,
        struct(
            kind,
            least(
                {{ c_end }},
                if(
                    kind <= {{ kinds.update_row }} and next_earliest.batch > batch,
                    {{ dbt_history._shift_by_gap('next_earliest.at', convention) }},
                    null
                )
            ) as end_at,
            {{ can_close }} as can_close
        ),
        null
    ),
    true
) over (
    {{ axis | indent(4) }}
    rows between unbounded preceding and 1 preceding
) as before
{%- endmacro %}


{#
    Whether a deletion needs a tombstone: no version ends there, no equal deletion precedes it, no
    version follows it, and no earliest start of a later batch removes it. A stored tombstone is
    made unnecessary only by staged rows.
#}
{% macro _needs_tombstone(convention) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
(
    not coalesce(
        if(
            before.kind <= {{ kinds.update_row }},
            before.can_close and not coalesce(before.end_at < {{ c_end }}, false)
                and (not is_tombstone or before.kind <> {{ kinds.stored }}),
            before.end_at = {{ c_end }}
        ),
        false
    )
    and (
        next_version is null
        or {{ c_end }} < {{ dbt_history._shift_by_gap('next_version.at', convention) }}
    )
    and coalesce(
        next_earliest.batch <= batch
            or {{ c_end }} < {{ dbt_history._shift_by_gap('next_earliest.at', convention) }},
        true
    )
)
{%- endmacro %}


{# The cell of a new tombstone; its key is that of the deletion. #}
{% macro _tombstone_cell(column, convention) %}
    {%- set c_end = dbt_history._prefixed(convention.end) -%}
    {%- if column.name | lower == convention.start | lower -%}
        {%- do return(dbt_history._shift_by_gap(c_end, convention, '+')) -%}
    {%- elif column.name | lower == convention.end | lower -%} {%- do return(c_end) -%}
    {%- elif convention.active and column.name | lower == convention.active | lower -%}
        {%- do return('false') -%}
    {%- endif -%}
    {%- do return('null') -%}
{% endmacro %}
