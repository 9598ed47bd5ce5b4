{#
    Refuses the pending batches if rows of them are invalid; reports all reasons at once, each with
    its count and up to five sample rows.
#}
{% macro _refuse_bad_rows(staged, batches, columns, settings, caller_name) %}
    {% set found = [] %}
    {% for batch in batches %}
        {% for name in batch.problems %}{% do found.append(name) %}{% endfor %}
        {% if batch.suspects %}{% do found.append('contradiction') %}{% endif %}
    {% endfor %}
    {% if not found %}
        {% do return(none) %}
    {% endif %}
    {% set samples = {} %}
    {% set counts = {} %}
    {% for row in run_query(dbt_history._problems_sql(staged, batches, columns, settings)).rows %}
        {% set row = fromjson(row[0]) %}
        {% do samples.setdefault(row.reason, []).append(tojson(row.sample)) %}
        {% do counts.update({row.reason: row.number}) %}
    {% endfor %}
    {% set lines = [] %}
    {% for reason, rows in samples.items() %}
        {% do lines.append(
            counts[reason] ~ ' rows: ' ~ reason ~ '\n      ' ~ rows | join('\n      ')
        ) %}
    {% endfor %}
    {% if lines %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'the batch has rows that cannot be applied; nothing was written',
            got='\n    ' ~ lines | join('\n    '),
            expected='staged rows as the documentation of history_batch describes them',
            node=model.unique_id,
            way_out='correct the rows at their source, or filter them out and keep them in another'
                ~ ' table',
        )) %}
    {% endif %}
{% endmacro %}


{#
    SQL: up to five rows per reason, as JSON {'reason', 'number' of all such rows, 'sample'}. It
    sorts the rows to compare neighbours, so it runs only if the plan has found a problem or a
    suspicion. A suspicion that was wrong (equal copies of one row) has no row here.
#}
{% macro _problems_sql(staged, batches, columns, settings) %}
    {%- set kinds = dbt_history._row_kinds() -%}
    {%- set convention = settings.convention -%}
    {%- set identity = settings.key + dbt_history._identity_columns(convention)[1:] -%}
    {%- set numbers = batches | map(attribute='batch', default=none) | reject('none') | list -%}
    with staged as (
        {{ dbt_history._batch_rows(
            staged, columns, settings,
            '`_batch` in (' ~ numbers | join(', ') ~ ')' if numbers and '_batch' in staged.names
                else none,
        ) | indent(8) }}
    ),

    -- `before` has the same position, or `first` has none: then no other row may differ from it.
    --
    --     position   NULL   1   1   2
    --     row        a      a   b   c       b: differs from its neighbour; b, c: from the first
    neighbours as (
        select
            *,
            lag(struct(*)) over stage_of_version as before,
            first_value(struct(*)) over stage_of_version as first
        from staged
        window stage_of_version as (
            partition by batch, kind, at
                {%- for name in identity %}, {{ dbt_history._prefixed(name) }}{% endfor %}
            order by position nulls first
        )
    ),

    wrong as (
        {%- for problem in dbt_history._row_problems(settings, columns) %}
        select {{ dbt_history._string_literal(problem.reason) }} as reason, *
        from neighbours
        where {{ problem.sql }}
        union all
        {%- endfor %}
        select
            'two different rows of one stage have the same key and start,'
                || ' and no _order to decide between them' as reason,
            *
        from neighbours
        where
            kind in ({{ kinds.upsert_row }}, {{ kinds.update_row }})
            and (
                (
                    position = before.position
                    and not {{ dbt_history._is_same_row(columns, 'before.') }}
                )
                or (
                    first.position is null
                    and not {{ dbt_history._is_same_row(columns, 'first.') }}
                )
            )
    ),

    numbered as (
        select
            *,
            count(*) over (partition by reason) as number,
            row_number() over (partition by reason order by batch, kind, at) as place
        from wrong
    )

    select to_json(struct(
        reason,
        number,
        struct(
            batch as `_batch`,
            kind as stage,
            at
            {%- for name in settings.key + [convention.end] %},
            {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }}
            {%- endfor %}
        ) as sample
    )) as problem
    from numbered
    where place <= 5
    order by reason, place
{%- endmacro %}


{# Whether a staged row says the same as another; cells that it leaves unmodified are not read. #}
{% macro _is_same_row(columns, other) %}
    {%- set terms = ['array_sort(unmodified) <=> array_sort(' ~ other ~ 'unmodified)'] -%}
    {%- for column in columns -%}
        {%- do terms.append(
            '(array_contains(unmodified, ' ~ dbt_history._string_literal(column.name | lower)
                ~ ') or ' ~ dbt_history._rows_are_equal([column], '', other) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- do return('(' ~ terms | join(' and ') ~ ')') -%}
{% endmacro %}
