{#
    Which pending batches one commit may contain. Several are applied by one MERGE if the result is
    the same as that of one MERGE each. For each key, the first row of a batch is the first by
    effective time:

        key with an earliest start E    E is the first row, and removes no earlier update row
        key without one                 the first row comes after all rows of earlier batches

        batch 1     E---u            batch 1     u        D          batch 1     u     D
        batch 2           E---u      batch 2                 u       batch 2        u
                    one commit                   one commit          a new commit from batch 2 on

    A batch gets its own commit if a row starts before the E of the same batch, if rows of one key
    from two batches are less than a gap apart, or if a row is active and has an end. A column that
    the SELECT lacks keeps its value in a version that is sent again, unless an earlier batch has
    removed the version: then a batch that comes after an earliest start begins a new commit.
#}


{# Plans for the pending batches, in order, each for one commit. #}
{% macro _plan_commits(staged, columns, settings, batches) %}
    {% set single = [] %}
    {% for batch in batches %}
        {% do single.append(dict(batch, first_batch=batch.batch, parts=[])) %}
    {% endfor %}
    {% set most = settings.get('batches_per_commit') or single | length %}
    {% if single | length < 2 or most == 1 or settings.version_order == 'increasing'
        or '_batch' not in staged.names %}
        {% do return(single) %}
    {% endif %}
    {% set plans = [] %}
    {% for row in run_query(dbt_history._commit_ranges_sql(
        staged, columns, settings, single,
    )).rows %}
        {% set range = fromjson(row[0]) %}
        {% set parts = [] %}
        {% for plan in single if range.first <= plan.batch <= range.last %}
            {% do parts.append(plan) %}
        {% endfor %}
        {% for some in parts | batch(most) %}
            {% do plans.append(dbt_history._joined_plan(some, range.key_bits)) %}
        {% endfor %}
    {% endfor %}
    {% do return(plans) %}
{% endmacro %}


{#
    One plan for consecutive batches: the sums, the smallest bound, all unmodified columns, the
    watermarks of the last.
#}
{% macro _joined_plan(parts, key_bits) %}
    {% set joined = dict(
        parts[-1], first_batch=parts[0].batch, key_bits=key_bits,
        parts=parts if parts | length > 1 else [],
    ) %}
    {% for name in ['rows', 'earliest_start', 'updates', 'upserts', 'deletes', 'deleting'] %}
        {% do joined.update({name: parts | sum(attribute=name)}) %}
    {% endfor %}
    {% set first = parts | sort(attribute='min_effective_at') | first %}
    {% set unmodified = {} %}
    {% for part in parts %}
        {% do unmodified.update(dict.fromkeys(part.unmodified)) %}
    {% endfor %}
    {% do joined.update({
        'stages': dbt_history._rows_by_stage(joined),
        'unmodified': unmodified.keys() | list,
        'evaluated_at': parts | map(attribute='evaluated_at') | max,
        'min_effective_at': first.min_effective_at,
        'bound': first.bound,
    }) %}
    {% do return(joined) %}
{% endmacro %}


{# The name of a plan in messages: its batch, or the first and last of several. #}
{% macro _plan_name(plan) %}
    {% if plan.batch is none %}
        {% do return('batch without a number') %}
    {% endif %}
    {% do return(
        'batches ' ~ plan.first_batch ~ ' to ' ~ plan.batch if plan.get('parts')
            else 'batch ' ~ plan.batch
    ) %}
{% endmacro %}


{#
    Rows of JSON {'first', 'last', 'key_bits'}: the ranges of batch numbers that one commit may
    contain, in order.
#}
{% macro _commit_ranges_sql(staged, columns, settings, batches) %}
    {%- set convention = settings.convention -%}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set keys = dbt_history._all_prefixed(settings.key) | join(', ') -%}
    {%- set c_end = dbt_history._prefixed(convention.end) -%}
    {%- set keeps_columns = dbt_history._columns_not_selected(staged, columns) != [] -%}
    with staged as (
        {{ dbt_history._batch_rows(
            staged, columns, settings,
            '`_batch` between ' ~ batches[0].batch ~ ' and ' ~ batches[-1].batch
        ) | indent(8) }}
    ),

    points as (
        select
            {{ keys }},
            batch,
            at,
            max({{ dbt_history._key_bitmap_place(settings, columns) }}) as key_bit,
            bool_or(kind = {{ kinds.earliest_start }}) as is_earliest,
            bool_or(kind = {{ kinds.update_row }}) as is_update,
            {%- if keeps_columns %}
            bool_or(kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})) as is_version,
            {%- endif %}
            {% if convention.active -%}
            coalesce(
                bool_or(
                    kind <> {{ kinds.delete_row }}
                        and {{ dbt_history._is_open_prefixed(convention) }}
                        and {{ c_end }} {{ 'is not null' if convention.open_end is none
                            else '< ' ~ dbt_history._open_end(convention) }}
                ),
                false
            )
            {%- else -%}
            false
            {%- endif %}
            {%- if settings.late_events %}
                or bool_or(kind = {{ kinds.update_row }})
            {%- endif %} as has_ended
        from staged
        group by {{ keys }}, batch, at
    ),

    neighbours as (
        select
            *,
            lag(struct(at, batch)) over axis as before,
            lead(struct(at, batch)) over axis as after
        from points
        window axis as (partition by {{ keys }} order by at, batch)
    ),

    batches_of_keys as (
        select
            {{ keys }},
            batch,
            max(key_bit) as key_bit,
            min(at) as first_at,
            max(at) as last_at,
            min(if(is_earliest, at, null)) as earliest,
            max(if(is_update, at, null)) as last_update,
            {%- if keeps_columns %}
            max(if(is_version, at, null)) as last_version,
            {%- endif %}
            bool_or(
                has_ended
                or coalesce(
                    before.batch <> batch and before.at < at
                        and before.at > {{ dbt_history._shift_by_gap('at', convention) }},
                    false
                )
                or coalesce(
                    after.batch <> batch and at < after.at
                        and at > {{ dbt_history._shift_by_gap('after.at', convention) }},
                    false
                )
            ) as is_alone
        from neighbours
        group by {{ keys }}, batch
    ),

    compared as (
        select
            batch,
            key_bit,
            is_alone or coalesce(first_at < earliest, false) as is_alone,
            coalesce(
                if(
                    earliest is null,
                    first_at <= max(last_at) over earlier,
                    max(last_update) over earlier >= earliest
                ),
                false
            )
            {%- if keeps_columns %}
                or coalesce(last_version >= min(earliest) over earlier, false)
            {%- endif %} as begins
        from batches_of_keys
        window earlier as (
            partition by {{ keys }} order by batch rows between unbounded preceding and 1 preceding
        )
    ),

    batches as (
        select
            batch,
            bool_or(begins or is_alone) as begins,
            lag(bool_or(is_alone), 1, false) over (order by batch) as follows_alone
        from compared
        group by batch
    ),

    commits as (
        select
            batch,
            sum(if(begins or follows_alone, 1, 0)) over (order by batch) as number
        from batches
    )

    select to_json(struct(
        min(commits.batch) as first,
        max(commits.batch) as last,
        {{ dbt_history._key_bitmap('compared.key_bit') }} as key_bits
    )) as commit_range
    from commits
    inner join compared on commits.batch = compared.batch
    group by commits.number
    order by commits.number
{%- endmacro %}
