{#
    Plans all batches in one pass over the staged rows, which also fills their cache. For each
    batch: the number of rows, the problems, the earliest time in its rows (versions that ended more
    than a gap before it are not needed), the columns that some update row leaves unmodified, and,
    if it is the only batch after `last_batch`, a bitmap of its keys.

    Returns a list of batches in order: {'batch', 'rows', 'stages', 'min_effective_at',
    'first_point', 'unmodified', 'deleting', 'problems', 'evaluated_at', 'key_bits'}. `first_point`:
    the first point that `_refuse_earlier_version` compares, where it differs from the time.
#}
{% macro _plan_batches(staged, columns, settings, last_batch) %}
    {% set batches = [] %}
    {% set keepable = dbt_history._keepable_names(columns, settings) %}
    {% set checks = dbt_history._row_problems(settings, columns) | map(attribute='name') | list %}
    {% for row in run_query(dbt_history._plan_sql(staged, columns, settings, last_batch)).rows %}
        {% set batch = fromjson(row[0]) %}
        {% set problems = {} %}
        {% for name in checks if batch.get(name) %}
            {% do problems.update({name: batch[name]}) %}
        {% endfor %}
        {% do batch.update({
            'unmodified': dbt_history._names_of_bits(batch, keepable),
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


{#
    SQL: one row per batch, in order, as JSON: the fields of `_plan_batches`. The rows are counted
    per stage, key and start, and then per batch, in one pass. Two rows that contradict each other
    are only suspected here (`suspects`); `_problems_sql` compares them.
#}
{% macro _plan_sql(staged, columns, settings, last_batch) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set convention = settings.convention -%}
    {%- set problems = dbt_history._row_problems(settings, columns) -%}
    {%- set identity = settings.key + dbt_history._identity_columns(convention)[1:] -%}
    {%- set masks = dbt_history._masks_of_names(
        dbt_history._keepable_names(columns, settings)
            if dbt_history._may_keep_columns(staged, columns) else [],
    ) -%}
    {#- A version that starts up to a gap after the end of a deletion says that it needs no
        tombstone. -#}
    {%- set first_at = 'if(kind = ' ~ kinds.delete_row ~ ', '
        ~ dbt_history._shift_by_gap('at', convention) ~ ', at)'
        if convention.gap and settings.late_events else 'at' -%}
    {%- set has_points = convention.gap and settings.get('version_order') == 'increasing' -%}
    with staged as (
        {{ dbt_history._batch_rows(staged, columns, settings) | indent(8) }}
    ),

    -- Rows of one stage with the same key and identity: more copies than positions may contradict
    -- each other. All values are numbers, because Spark sorts the rows for any other aggregate.
    identities as (
        select
            batch,
            kind,
            at,
            {{ dbt_history._key_bitmap_place(settings, columns) }} as key_bit,
            {%- if has_points %}
            min(
                if(
                    kind = {{ kinds.delete_row }},
                    {{ dbt_history._shift_by_gap(
                        dbt_history._prefixed(convention.end), convention, '+',
                    ) }},
                    at
                )
            ) as point,
            {%- endif %}
            count(*) as copies,
            {{ 'count(distinct position)' if '_order' in staged.names else '0L' }} as positions,
            {%- for mask in masks %}
            bit_or(if(kind = {{ kinds.update_row }}, {{ mask }}, 0L)) as kept_{{ loop.index0 }},
            {%- endfor %}
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
        min({{ dbt_history._axis_number(first_at, convention) }}) as min_effective_at,
        {%- if has_points %}
        {{ dbt_history._axis_number('min(point)', convention) }} as first_point,
        {%- endif %}
        count_if(
            kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }}) and copies > 1
                and positions < copies
        ) as suspects,
        {%- for mask in masks %}
        bit_or(kept_{{ loop.index0 }}) as kept_{{ loop.index0 }},
        {%- endfor %}
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


{# The columns that `_unmodified` may name, in lower case: all but the key and the identity. #}
{% macro _keepable_names(columns, settings) %}
    {% set identity = settings.key + dbt_history._identity_columns(settings.convention) %}
    {% set names = columns | map(attribute='name') | map('lower') %}
    {% do return(names | reject('in', identity | map('lower') | list) | list) %}
{% endmacro %}


{# Whether an update row may have unmodified columns: it names them, or the SELECT lacks them. #}
{% macro _may_keep_columns(staged, columns) %}
    {% set names = columns | map(attribute='name') | map('lower') %}
    {% do return(
        '_unmodified' in staged.names or names | reject('in', staged.names) | list != []
    ) %}
{% endmacro %}


{#
    The names in the array `unmodified` as numbers, with one bit per name:

        names a, b, c       unmodified  ['a', 'c']  -> 101 (binary) = 5

    Returns a list of expressions, each for up to 62 names; `_names_of_bits` is the inverse.
#}
{% macro _masks_of_names(names) %}
    {% set masks = [] %}
    {% for some in names | batch(62) %}
        {% set bits = [] %}
        {% for name in some %}
            {% do bits.append(
                'if(array_contains(unmodified, ' ~ dbt_history._string_literal(name) ~ '), '
                    ~ 2 ** loop.index0 ~ 'L, 0L)'
            ) %}
        {% endfor %}
        {% do masks.append(bits | join(' | ')) %}
    {% endfor %}
    {% do return(masks) %}
{% endmacro %}


{# The names whose bits are set in `kept_0`, `kept_1` … of a batch. #}
{% macro _names_of_bits(batch, names) %}
    {% set found = [] %}
    {% for some in names | batch(62) %}
        {% set bits = batch.get('kept_' ~ loop.index0) or 0 %}
        {% for name in some if bits %}
            {% do found.append(name) if (bits // 2 ** loop.index0) % 2 %}
        {% endfor %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


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
    {% for name in dbt_history._keepable_names(columns, settings) + settings.get('ignored', []) %}
        {% do keepable.append(dbt_history._string_literal(name)) %}
    {% endfor %}
    {% set partly_said = [] %}
    {% for name in settings.get('partly_said') or [] %}
        {% do partly_said.append(dbt_history._string_literal(name)) %}
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
            'sql': 'kind = ' ~ kinds.upsert_row ~ ' and size('
                ~ (
                    'array_except(unmodified, array(' ~ partly_said | join(', ') ~ '))'
                        if partly_said else 'unmodified'
                ) ~ ') > 0',
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
    {% set empty = [] %}
    {% for name in settings.get('null_if_empty', []) %}
        {% set cell = dbt_history._prefixed(name) %}
        {% do empty.append(
            'length(' ~ cell ~ ') = 0' ~ (
                '' if name | lower in settings.key | map('lower')
                    else ' and kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row
                        ~ ') and not array_contains(unmodified, '
                        ~ dbt_history._string_literal(name | lower) ~ ')'
            )
        ) %}
    {% endfor %}
    {% if empty %}
        {% do problems.append({
            'name': 'empty_partition', 'sql': '(' ~ empty | join(') or (') ~ ')',
            'reason': 'an empty text in a partition column ('
                ~ settings.null_if_empty | join(', ') ~ '), which Delta stores as NULL: replace it'
                ~ ' in the SELECT, or partition by another column',
        }) %}
    {% endif %}
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
