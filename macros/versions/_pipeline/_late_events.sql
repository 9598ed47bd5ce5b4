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
    CTE `with_known_ends`: the rows of `history`, and those of the ends, which are at the end:

        kind        row of                  ends staged rows    may become a tombstone
        tombstone   a stored tombstone      yes                 may be removed
        known_end   a closed version        yes                 yes
        deletion    a delete row            the delete does     yes

    At one instant they are in this order. So equal ends follow each other, also those of a delete
    row that is a gap after its end.
#}
{% macro _known_ends_cte(batch) %}
{%- set convention, kinds = batch.settings.convention, dbt_history._row_kinds() -%}
with_known_ends as (
    select
        history.* except (kind, at),
        points.kind,
        if(points.kind >= {{ kinds.tombstone }}, {{ dbt_history._prefixed(convention.end) }}, at)
            as at
    from history
    lateral view explode(case
        when history.kind = {{ kinds.stored }} and {{ dbt_history._is_tombstone_row(
            batch.columns, batch.settings.key, convention, is_prefixed=true,
        ) }}
            then array({{ kinds.tombstone }})
        when history.kind in ({{ kinds.stored }}, {{ kinds.upsert_row }})
            and {{ dbt_history._has_ended_prefixed(convention) }}
            then array(history.kind, {{ kinds.known_end }})
        {%- if batch.plan.deletes %}
        when history.kind = {{ kinds.delete_row }}
            then array({{ kinds.delete_row }}, {{ kinds.deletion }})
        {%- endif %}
        else array(history.kind)
    end) points as kind
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
    where kind <> {{ kinds.known_end }}
        or not coalesce(stored_start > {{ dbt_history._prefixed(convention.start) }}, false)
),
{%- endmacro %}


{# The point up to which a row is removed by an earliest start: an end with its gap. #}
{% macro _known_end_until(convention) %}
    {%- set until = dbt_history._shift_by_gap('at', convention, '+') -%}
    {%- do return(
        'at' if until == 'at'
            else 'if(kind >= ' ~ dbt_history._row_kinds().tombstone ~ ', ' ~ until ~ ', at)'
    ) -%}
{% endmacro %}


{# Column `known_end`: what ends a staged row, the next known end before the next version. #}
{% macro _known_end_column() %}
{%- set kinds = dbt_history._row_kinds() -%}
if(
    kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})
        and (next_version is null or next_end < next_version.at),
    next_end,
    null
) as known_end
{%- endmacro %}


{# Column `before`: the last version or end before a row, and its end if that shows a deletion. #}
{% macro _before_column(axis, c_end) %}
{%- set kinds = dbt_history._row_kinds() -%}
last_value(
    if(
        remains and not is_skipped,
        struct(
            kind,
            if(kind <= {{ kinds.update_row }}, if(can_close, new_end, null), {{ c_end }}) as end_at
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
    Whether the end of a row needs a tombstone: no version ends there, no equal end precedes it, and
    no version starts up to a gap after it, which would end earlier ones there itself. A stored
    tombstone is made unnecessary only by staged rows.
#}
{% macro _needs_tombstone(convention) %}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
{%- set next_start -%}
if(kind = {{ kinds.tombstone }}, next_begun, next_version.at)
{%- endset -%}
(
    not coalesce(
        before.end_at = {{ c_end }}
            and (kind <> {{ kinds.tombstone }} or before.kind <> {{ kinds.stored }}),
        false
    )
    and coalesce({{ c_end }} < {{ dbt_history._shift_by_gap(next_start, convention) }}, true)
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
