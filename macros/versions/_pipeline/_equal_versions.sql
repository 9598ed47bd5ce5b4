{#
    `merge_equal` and `track_columns` of `batch_rows`: versions that follow each other and are equal
    in all tracked columns are one version, which has the values of the last change.

        at          1              5             9
        changes     a              a             b
        versions    [ a ---------- a ------------[ b ---- open
        stored      [ a -------------------------[ b ---- open
                                   |                       repeat: start 5, end 5 - gap

    A repeat is an empty version within the period of another one. It keeps the place of a change
    that changed no tracked column, so that the table does not depend on the order of arrival
    (docs/decisions/0103-repeats.md):

        late        x at 3
        becomes     [ a --)[ x --)[ a -----------[ b ---- open

    Of the other columns, each change has its own values. The first row of a run has those of the
    last change, as a reader should find them, and each repeat those of the change before it:

        row of      1              5             7
        values of   change at 7    change at 1   change at 5

    The pass over a batch begins with the changes (`_stored_changes_ctes`), applies the rules to
    them, and ends with runs (`_runs_ctes`).
#}


{#
    The options of `batch_rows` for the model that applies its rows; none if no option is used:
        tracked   {'columns', 'omitted'}: the tracked columns, or all but the omitted ones. None if
                  every change makes a version
        fills     whether NULL keeps a value: then a row without a base is inserted
#}
{% macro _row_options(merge_equal, track_columns, omitted, ignore_null_updates, key, convention) %}
    {%- set columns = dbt_history._key_columns(track_columns) -%}
    {%- set omitted = dbt_history._key_columns(omitted) -%}
    {%- set fills = ignore_null_updates if ignore_null_updates is boolean
        else dbt_history._key_columns(ignore_null_updates) != [] -%}
    {%- set fixed = (
        dbt_history._key_columns(key) + dbt_history._period_columns(convention)
    ) | map('lower') | list -%}
    {%- set problems = [] -%}
    {%- if merge_equal is not boolean -%}
        {%- do problems.append('merge_equal is ' ~ tojson(merge_equal) ~ ': true or false') -%}
    {%- endif -%}
    {%- if columns and omitted -%}
        {%- do problems.append('track_columns and except: name one of them') -%}
    {%- endif -%}
    {%- for column in columns + omitted if column | lower in fixed -%}
        {%- do problems.append(column ~ ' is a column of the key or of the period') -%}
    {%- endfor -%}
    {%- set joins = merge_equal or columns or omitted -%}
    {%- if joins and dbt_history._identity_columns(convention) | length > 1 -%}
        {%- do problems.append(
            'versions have numbers of their own (' ~ convention.version_id ~ '): none is left out'
        ) -%}
    {%- endif -%}
    {%- if problems -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'batch_rows', 'these options do not fit', got='\n    ' ~ problems | join('\n    '),
            expected='merge_equal: true, or the names in track_columns or in except',
            node=dbt_history._node_of_context(),
        )) -%}
    {%- endif -%}
    {%- set tracked = {'columns': columns or none, 'omitted': omitted} if joins else none -%}
    {%- do return({'tracked': tracked, 'fills': fills} if joins or fills else none) -%}
{% endmacro %}


{# Names in `track_columns` and `except` that are no columns of the table. #}
{% macro _check_tracked_columns(columns, settings) %}
    {% set tracked = settings.tracked if settings.tracked is mapping else {} %}
    {% set names = columns | map(attribute='name') | map('lower') | list %}
    {% set problems = [] %}
    {% for name in (tracked.get('columns') or []) + (tracked.get('omitted') or [])
        if name | lower not in names %}
        {% do problems.append(
            'track_columns or except names ' ~ name ~ ', which is no column of the table'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{# The option is recorded in the table, because the repeats remain when it is switched off. #}
{% macro _repeats_property() %}
    {% do return('dbt_history.tracked') %}
{% endmacro %}


{#
    The settings with `has_repeats`, whether the table may have repeats. A run that changes the
    tracked columns records them; `rewind` uses the recorded ones.
#}
{% macro _with_repeats(settings, target) %}
    {% if dbt_history._identity_columns(settings.convention) | length > 1 %}
        {% do return(dict(settings, has_repeats=false)) %}
    {% endif %}
    {% set property = dbt_history._repeats_property() %}
    {% set text = dbt_history._table_property(target, property) %}
    {% set recorded = dbt_history._property_value(text) %}
    {% set tracked = settings.tracked %}
    {% if tracked == 'recorded' %}
        {% do dbt_history._refuse_masked_columns(target, text) %}
        {% set tracked = recorded %}
    {% endif %}
    {% if tracked != recorded or text == dbt_history._masked() %}
        {% do dbt_history._record_tracked(target, tracked) %}
    {% endif %}
    {% do return(dict(
        settings, tracked=tracked, has_repeats=text is not none or tracked is not none,
    )) %}
{% endmacro %}


{% macro _record_tracked(relation, tracked) %}
    {% do run_query(dbt_history._property_sql(
        relation, dbt_history._repeats_property(), dbt_history._property_text(tracked),
    )) %}
{% endmacro %}


{# A release before this one recorded columns in a form that Spark masks in an Iceberg table. #}
{% macro _refuse_masked_columns(relation, text) %}
    {% if text == dbt_history._masked() %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'rewind', 'the tracked columns of the table cannot be read; nothing was written',
            got=dbt_history._repeats_property() ~ ' = ' ~ text, node=relation | string,
            way_out='run the model, which records them again',
        )) %}
    {% endif %}
{% endmacro %}


{# Without a batch the columns are recorded only where the recorded ones cannot be read. #}
{% macro _record_masked_columns(settings, relation) %}
    {% do dbt_history._record_tracked(relation, settings.tracked)
        if settings.tracked not in [none, 'recorded'] and dbt_history._table_property(
            relation, dbt_history._repeats_property()
        ) == dbt_history._masked() %}
{% endmacro %}


{# The recorded tracked columns of a table; none without the option. #}
{% macro _recorded_tracked(relation) %}
    {% do return(dbt_history._property_value(
        dbt_history._table_property(relation, dbt_history._repeats_property())
    )) %}
{% endmacro %}


{# Whether a table has, or had, the option. #}
{% macro _may_have_repeats(relation) %}
    {% do return(
        dbt_history._table_property(relation, dbt_history._repeats_property()) is not none
    ) %}
{% endmacro %}


{# A column that was renamed has its new name in the recorded columns, too. #}
{% macro _rename_tracked_column(relation, from_column, to_column) %}
    {% set tracked = dbt_history._recorded_tracked(relation) %}
    {% set renamed = {} %}
    {% for kind, names in (tracked or {}).items() %}
        {% set new = [] %}
        {% for name in names or [] %}
            {% do new.append(to_column if name | lower == from_column | lower else name) %}
        {% endfor %}
        {% do renamed.update({kind: new if names is not none else none}) %}
    {% endfor %}
    {% if renamed != (tracked or {}) %}
        {% do dbt_history._record_tracked(relation, renamed) %}
    {% endif %}
{% endmacro %}


{# The columns besides the key and the period. #}
{% macro _data_columns(columns, settings) %}
    {% do return(dbt_history._without(
        columns, settings.key + dbt_history._period_columns(settings.convention),
    )) %}
{% endmacro %}


{# The tracked columns of the table; `_changed_by` tells who made a change, and is never tracked. #}
{% macro _tracked_columns(columns, settings) %}
    {% set data = dbt_history._data_columns(columns, settings) %}
    {% set tracked = settings.tracked %}
    {% if tracked.columns is none %}
        {% do return(dbt_history._without(data, tracked.omitted + ['_changed_by'])) %}
    {% endif %}
    {% set chosen = [] %}
    {% for column in data if column.name | lower in tracked.columns | map('lower') | list %}
        {% do chosen.append(column) %}
    {% endfor %}
    {% do return(chosen) %}
{% endmacro %}


{#
    CTEs that end in `stored_changes`: the stored rows that the plan can affect, as the changes that
    they were made of. `raw` is the row as it is stored.

    A repeat that ended before the bound is not read; then its run's first row has the values of the
    last change before the bound, which is all that the plan can still affect.
#}
{% macro _stored_changes_ctes(batch) %}
{%- set convention, columns = batch.settings.convention, batch.columns -%}
{%- set c_end = dbt_history._prefixed(convention.end) -%}
{%- set before = dbt_history._shift_by_gap('at', convention) -%}
{%- set keys = dbt_history._all_prefixed(batch.settings.key) | join(', ') -%}
{%- set cells = dbt_history._all_prefixed(columns | map(attribute='name')) | join(', ') -%}
{%- set moved = dbt_history._data_columns(columns, batch.settings)
    | map(attribute='name') | list -%}
stored_rows as (
    select
        stored.{{ dbt_history._quote(convention.start) }} as at
        {%- for column in columns %},
        stored.{{ dbt_history._quote(column.name) }} as {{ dbt_history._prefixed(column.name) }}
        {%- endfor %}
    {{ dbt_history._from_affected_versions(batch) | indent(4) }}
),

-- A version whose flag is NULL contains no repeat.
stored_with_container as (
    select
        *,
        last_value(
            if(
                {{ dbt_history._is_empty_prefixed(convention) }},
                null,
                struct(
                    case
                        when {{ dbt_history._is_active_prefixed(convention) }} is null
                            then {{ before }}
                        when {{ dbt_history._has_ended_prefixed(convention) }} then {{ c_end }}
                    end as ends
                )
            ),
            true
        ) over (
            partition by {{ keys }}
            order by at
            rows between unbounded preceding and 1 preceding
        ) as container
    from stored_rows
),

stored_repeats as (
    select
        at,
        {{ cells }},
        {{ dbt_history._is_empty_prefixed(convention) }}
            and container is not null
            and coalesce({{ before }} < container.ends, true) as is_repeat
    from stored_with_container
),

stored_changes as (
    select
        at,
        struct({{ cells }}) as raw
        {%- for column in columns %},
        {% set cell = dbt_history._prefixed(column.name) -%}
        {% if column.name in moved -%}
        if(next.is_repeat, next.{{ cell }}, run.{{ cell }})
        {%- elif column.name | lower == convention.end | lower -%}
        if(next.is_repeat, {{ dbt_history._shift_by_gap('next.at', convention) }}, run.{{ c_end }})
        {%- elif column.name | lower == (convention.active or '') | lower -%}
        if(next.is_repeat, false, run.{{ cell }})
        {%- else -%}
        {{ cell }}
        {%- endif %} as {{ cell }}
        {%- endfor %}
    from (
        select
            *,
            lead(struct(is_repeat, at, {{ cells }})) over (
                partition by {{ keys }} order by at
            ) as next,
            last_value(if(is_repeat, null, struct({{ cells }})), true) over (
                partition by {{ keys }}
                order by at
                rows between unbounded preceding and current row
            ) as run
        from stored_repeats
    ) as neighbours
),
{%- endmacro %}


{#
    CTEs that end in `runs`: the versions after the rules, joined to runs. A version continues the
    one before it if that one ends where it starts and both are equal in all tracked columns.
#}
{% macro _runs_ctes(batch, axis) %}
{%- set convention, columns, settings = batch.settings.convention, batch.columns, batch.settings -%}
{%- set kinds = dbt_history._row_kinds() -%}
{%- set before = dbt_history._shift_by_gap('at', convention) -%}
{%- set data = dbt_history._data_columns(columns, settings) -%}
{%- set cells = dbt_history._all_prefixed(data | map(attribute='name')) -%}
with_previous as (
    select
        *,
        kind <= {{ kinds.update_row }} and remains and not is_skipped and not is_replaced
            as is_version,
        is_open or coalesce(final_end > {{ before }}, true) as is_not_empty
    from final_versions
),

with_continued as (
    select
        *,
        {% if settings.tracked is none -%}
        false
        {%- else -%}
        is_version and can_close and is_not_empty
            and coalesce(
                previous.can_close and previous.is_not_empty and not previous.is_open
                    and previous.final_end = {{ before }}
                    and {{ dbt_history._rows_are_equal(
                        dbt_history._tracked_columns(columns, settings), '', 'previous.',
                    ) }},
                false
            )
        {%- endif %} as continues
    from (
        select
            *,
            lag(if(
                is_version,
                struct({{ (['can_close', 'is_not_empty', 'is_open', 'final_end'] + cells)
                    | join(', ') }}),
                null
            )) ignore nulls over (
                {{ axis | indent(4) }}
            ) as previous
        from with_previous
    ) as neighbours
),

with_last as (
    select
        *,
        first_value(
            if(
                is_version and not is_continued,
                struct({{ (['is_open', 'final_end'] + cells) | join(', ') }}),
                null
            ),
            true
        ) over (
            {{ axis | indent(4) }}
            rows between current row and unbounded following
        ) as last
    from (
        select
            *,
            coalesce(
                lead(if(is_version, continues, null)) ignore nulls over (
                    {{ axis | indent(4) }}
                ),
                false
            ) as is_continued
        from with_continued
    ) as neighbours
),

runs as (
    select
        * except (is_open, final_end, is_stored{{ ', ' if cells }}{{ cells | join(', ') }}),
        is_stored or kind = {{ kinds.stored }} as is_stored,
        case
            when not is_version then is_open
            when continues then false
            else last.is_open
        end as is_open,
        case
            when not is_version then final_end
            when continues then {{ before }}
            else last.final_end
        end as final_end
        {%- for cell in cells %},
        case
            when not is_version then {{ cell }}
            when continues then previous.{{ cell }}
            else last.{{ cell }}
        end as {{ cell }}
        {%- endfor %}
    from with_last
),
{%- endmacro %}
