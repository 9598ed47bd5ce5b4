{#
    Plans all batches in one pass over the staged rows, which also fills their cache. For each
    batch: the number of rows, the problems, the earliest time in its rows (versions that ended more
    than a gap before it are not needed), the columns that some update row leaves unmodified, and,
    if it is the only batch after `last_batch`, a bitmap of its keys.

    Returns a list of batches in order: {'batch', 'rows', 'stages', 'min_effective_at',
    'unmodified', 'deleting', 'problems', 'evaluated_at', 'key_bits'}.
#}
{% macro _plan_batches(staged, columns, settings, last_batch) %}
    {% set batches = [] %}
    {% for row in run_query(dbt_history._plan_sql(staged, columns, settings, last_batch)).rows %}
        {% set batch = fromjson(row[0]) %}
        {% set problems = {} %}
        {% for problem in dbt_history._row_problems(settings, columns) if batch.get(problem.name) %}
            {% do problems.update({problem.name: batch[problem.name]}) %}
        {% endfor %}
        {% do batch.update({
            'problems': problems,
            'suspects': batch.get('suspects') or 0,
            'stages': dbt_history._rows_by_stage(batch),
        }) %}
        {% do batches.append(batch) %}
    {% endfor %}
    {% do return(batches) %}
{% endmacro %}


{% macro _rows_by_stage(batch) %}
    {% do return({
        'earliest_start': batch.earliest_start, 'update': batch.updates, 'upsert': batch.upserts,
        'delete': batch.deletes,
    }) %}
{% endmacro %}


{% macro _plan_sql(staged, columns, settings, last_batch) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set convention = settings.convention -%}
    {%- set problems = dbt_history._row_problems(settings, columns) -%}
    {%- set identity = settings.key + dbt_history._identity_columns(convention)[1:] -%}
    with staged as (
        {{ dbt_history._batch_rows(staged, columns, convention) | indent(8) }}
    ),

    -- Rows of one stage with the same key and identity: more copies than positions may contradict
    -- each other.
    identities as (
        select
            batch,
            kind,
            at,
            {{ dbt_history._key_bitmap_place(settings, columns) }} as key_bit,
            count(*) as copies,
            size(collect_set(position)) as positions,
            flatten(collect_set(unmodified)) as unmodified,
            max(evaluated_at) as evaluated_at,
            count_if(
                kind in ({{ kinds.delete_row }}, {{ kinds.earliest_start }})
                    or not {{ dbt_history._is_open_prefixed(convention) }}
            ) as ending
            {%- for problem in problems %},
            count_if({{ problem.sql }}) as {{ problem.name }}
            {%- endfor %}
        from staged
        group by batch, kind, at
            {%- for name in identity %}, {{ dbt_history._prefixed(name) }}{% endfor %}
    )

    select to_json(struct(
        batch,
        sum(copies) as rows,
        sum(if(kind = {{ kinds.earliest_start }}, copies, 0)) as earliest_start,
        sum(if(kind = {{ kinds.update_row }}, copies, 0)) as updates,
        sum(if(kind = {{ kinds.upsert_row }}, copies, 0)) as upserts,
        sum(if(kind = {{ kinds.delete_row }}, copies, 0)) as deletes,
        count_if(ending > 0) as deleting,
        min(
            {{ 'unix_micros(at)' if convention.type == 'timestamp' else 'unix_date(at)'
                if convention.type == 'date' else 'at' }}
        ) as min_effective_at,
        count_if(
            kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and copies > 1
                and positions < copies
        ) as suspects,
        array_distinct(
            flatten(collect_set(if(kind = {{ kinds.update_row }}, unmodified, null)))
        ) as unmodified,
        {%- for problem in problems %}
        sum({{ problem.name }}) as {{ problem.name }},
        {%- endfor %}
        -- With several pending batches the plan of the commits has the bitmap.
        if(
            count_if(
                {{ 'batch > ' ~ last_batch if last_batch is not none else 'true' }}
            ) over () > 1,
            null,
            {{ dbt_history._key_bitmap('key_bit') }}
        ) as key_bits,
        max(evaluated_at) as evaluated_at
    )) as batch
    from identities
    group by batch
    order by identities.batch
{%- endmacro %}


{#
    The checks of a staged row: name, the condition over `_batch_rows`, and the reason in messages.
#}
{% macro _row_problems(settings, columns) %}
    {% set kinds = dbt_history._row_kinds() %}
    {% set convention = settings.convention %}
    {% set null_keys = [] %}
    {% for name in settings.key + dbt_history._identity_columns(convention)[1:] %}
        {% do null_keys.append(
            dbt_history._prefixed(name) ~ ' is null'
                ~ (
                    ' and kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row ~ ')'
                        if name not in settings.key else ''
                )
        ) %}
    {% endfor %}
    {% set keepable = [] %}
    {% for column in columns
        if column.name | lower not in (
            settings.key + dbt_history._identity_columns(convention)
        ) | map('lower') | list %}
        {% do keepable.append(dbt_history._string_literal(column.name | lower)) %}
    {% endfor %}
    {% set end = dbt_history._prefixed(convention.end) %}
    {% set supplies_end = 'kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row
        ~ ') and not (kind = ' ~ kinds.update_row ~ ' and array_contains(unmodified, '
        ~ dbt_history._string_literal(convention.end | lower) ~ '))' %}
    {% set problems = [
        {
            'name': 'unknown_stage', 'sql': 'kind is null',
            'reason': '_stage is not earliest_start, update, upsert, replace or delete',
        },
        {
            'name': 'null_key', 'sql': '(' ~ null_keys | join(') or (') ~ ')',
            'reason': 'a key column is NULL',
        },
        {
            'name': 'null_start',
            'sql': 'kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row ~ ', '
                ~ kinds.earliest_start ~ ') and at is null',
            'reason': convention.start ~ ' is NULL'
                ~ (
                    ' (updated_at: ' ~ settings.updated_at ~ ')' if settings.get('updated_at')
                        else ''
                ),
        },
        {
            'name': 'null_end', 'sql': 'kind = ' ~ kinds.delete_row ~ ' and at is null',
            'reason': convention.end ~ ' of a delete row is NULL',
        },
        {
            'name': 'unknown_unmodified',
            'sql': 'kind = ' ~ kinds.update_row ~ ' and size(array_except(unmodified, array('
                ~ (keepable | join(', ') or "''") ~ '))) > 0',
            'reason': '_unmodified contains a name that is no column, or is the key or the start',
        },
        {
            'name': 'unmodified_upsert',
            'sql': 'kind = ' ~ kinds.upsert_row ~ ' and size(unmodified) > 0',
            'reason': '_unmodified is for update rows: an upsert row supplies every column',
        },
        {
            'name': 'end_before_start',
            'sql': supplies_end ~ ' and ' ~ end ~ ' < '
                ~ dbt_history._shift_by_gap('at', convention),
            'reason': convention.end ~ ' is more than one gap before ' ~ convention.start,
        },
        {'name': 'negative_batch', 'sql': 'batch < 0', 'reason': '_batch is negative'},
    ] %}
    {% if convention.open_end is not none %}
        {% do problems.append({
            'name': 'start_at_open_end',
            'sql': 'kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row ~ ', '
                ~ kinds.earliest_start ~ ') and at >= ' ~ dbt_history._open_end(convention),
            'reason': convention.start ~ ' is not before the open end',
        }) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}
