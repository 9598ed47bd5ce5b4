{#
    Joins several version tables: one row per period in which none of them changes (the common
    refinement).

        customers  [ a1 -----------)[ a2 -------------
        prices           [ b1 ------------)
        inner            [ a1, b1 -)[ a2, b1 )
        full       [ a1 )[ a1, b1 -)[ a2, b1 )[ a2 ---

    `tables` maps a name to a relation, or to {'relation', 'key', 'convention'} where key or
    convention differ from the arguments. Without either, they are those of the relation's model; a
    log has the key that its convention or its commits name.

    Columns: the key with the first table's names, `valid_from`, `valid_to` (half-open, NULL if
    open), and one struct per table, under its name, with the version in force: `customers.city`.
    `kind`: `inner` (all tables have a version), `left` (the first has one), `full` (any has one).
    `inner` allows several records of a table per key; `left` and `full` need one record per key.

    If tables were cleaned, the result begins at the greatest of their retention horizons, because
    versions that ended by then may be missing: a period that began before begins there.

        customers    [ a1 --------------------------
        prices       [ b1 ----)[ b2 ----------------
        horizon               ^  after b1 was removed
        left                  [ a1, b2 -------------       not [ a1, NULL )[ a1, b2 ---
#}
{% macro history_join(tables, key=none, convention=none, kind='inner') %}
    {%- set sides = dbt_history._join_sides(tables, key, convention, kind) -%}
    {%- do return(
        dbt_history._inner_refinement(sides) if kind == 'inner'
            else dbt_history._outer_refinement(sides, kind)
    ) -%}
{% endmacro %}


{#
    The tables as a list: {'name', 'key', 'from', 'table', 'log', 'convention', 'start', 'until'},
    names quoted.
#}
{% macro _join_sides(tables, key, convention, kind) %}
    {% set sides = [] %}
    {% if tables is not mapping or tables.identifier is string %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'history_join', 'the tables have no names', got=tables,
            expected="a name for each table, such as {'customers': ref('customer_history'),"
                ~ " 'contracts': ref('contract_history')}",
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
    {% for name, said in tables.items() %}
        {% set said = said if said is mapping and 'relation' in said else {'relation': said} %}
        {% set reader = dbt_history._reader(
            said.relation, said.get('convention', convention), 'history_join',
        ) %}
        {% set own_key = said.get('key', key) or (reader.get('log') or {}).get('key') %}
        {% set alias = dbt_history._quote(name) %}
        {% do sides.append({
            'name': alias, 'convention': reader.convention, 'from': reader.from,
            'table': reader.table, 'log': reader.get('log'),
            'key': dbt_history._quoted(dbt_history._key_of(
                said.relation, own_key, 'history_join', convention=reader.convention,
            )),
            'start': alias ~ '.' ~ dbt_history._quote(reader.convention.start),
            'until': dbt_history._end_of_period(reader.convention, alias ~ '.'),
        }) %}
    {% endfor %}
    {% set lengths = sides | map(attribute='key') | map('length') | unique | list %}
    {% set types = sides | map(attribute='convention') | map(attribute='type') | unique | list %}
    {# Before dbt runs, keys and conventions of the nodes are not known. #}
    {% if kind not in ['inner', 'left', 'full'] or sides | length < 2
        or (execute and (lengths | length > 1 or types | length > 1)) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'history_join',
            'these tables cannot be joined by periods',
            got='kind ' ~ kind ~ ', ' ~ sides | length ~ ' tables, keys of '
                ~ lengths | join(' and ') ~ ' columns, axes of type ' ~ types | join(' and '),
            expected='kind inner, left or full; two tables or more, with keys of one length and'
                ~ ' axes of one type',
        )) %}
    {% endif %}
    {% do return(sides) %}
{% endmacro %}


{# The overlapping versions of one key, with the period they share. #}
{% macro _inner_refinement(sides) %}
    {%- set first = sides[0] -%}
    {%- set starts = sides | map(attribute='start') | list
        + dbt_history._retention_horizons(sides) -%}
    {%- set sql -%}
(
    select
        {%- for column in first.key %}
        {{ first.name }}.{{ column }},
        {%- endfor %}
        greatest({{ starts | join(', ') }}) as valid_from,
        least({{ sides | map(attribute='until') | join(', ') }}) as valid_to
        {%- for side in sides %},
        struct({{ side.name }}.*) as {{ side.name }}
        {%- endfor %}
    from {{ first.from }} as {{ first.name }}
    {%- for side in sides[1:] %}
    inner join {{ side.from }} as {{ side.name }}
        on
            {%- for column in side.key %}
            {{ first.name }}.{{ first.key[loop.index0] }} = {{ side.name }}.{{ column }} and
            {%- endfor %}
            coalesce({{ first.start }} < {{ side.until }}, true)
            and coalesce({{ side.start }} < {{ first.until }}, true)
    {%- endfor %}
    where
        coalesce(
            greatest({{ starts | join(', ') }})
            < least({{ sides | map(attribute='until') | join(', ') }}),
            true
        )
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{#
    All points at which a version of any table begins or ends, in order; at each point the versions
    that began last are in force.
#}
{% macro _outer_refinement(sides, kind) %}
    {%- set keys = sides[0].key -%}
    {%- set axis = 'partition by ' ~ keys | join(', ') ~ ' order by `_at`, `_begins`' -%}
    {%- set starts = ['`_at`'] + dbt_history._retention_horizons(sides) -%}
    {%- set valid_from = 'greatest(' ~ starts | join(', ') ~ ')' if starts[1:] else starts[0] -%}
    {%- set sql -%}
(
    select
        {{ keys | join(',\n        ') }},
        {{ valid_from }} as valid_from,
        `_next_at` as valid_to
        {%- for side in sides %},
        if({{ side.name }}.begins, {{ side.name }}.version, null) as {{ side.name }}
        {%- endfor %}
    from (
        select
            {{ keys | join(',\n            ') }},
            `_at`,
            lead(`_at`) over ({{ axis }}) as `_next_at`
            {%- for side in sides %},
            last_value(
                if(
                    `_table` = {{ loop.index }},
                    struct(`_begins` as begins, {{ side.name }} as version),
                    null
                ),
                true
            ) over ({{ axis }} rows between unbounded preceding and current row) as {{ side.name }}
            {%- endfor %}
        from (
            {{ dbt_history._refinement_points(sides) | indent(12) }}
        ) as points
    ) as periods
    where
        coalesce({{ valid_from }} < `_next_at`, true)
        and (
            {%- for side in (sides if kind == 'full' else sides[:1]) %}
            coalesce({{ side.name }}.begins, false){{ ' or' if not loop.last }}
            {%- endfor %}
        )
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{% macro _refinement_points(sides) %}
    {%- for side in sides -%}
    {%- set place = loop.index -%}
    {%- for begins in ['true', 'false'] -%}
    select
        {%- for column in side.key %}
        {{ side.name }}.{{ column }} as {{ sides[0].key[loop.index0] }},
        {%- endfor %}
        {{ side.start if begins == 'true' else side.until }} as `_at`,
        {{ begins }} as `_begins`,
        {{ place }} as `_table`
        {%- for other in sides %},
        {{ 'struct(' ~ side.name ~ '.*)' if loop.index == place else 'null' }} as {{ other.name }}
        {%- endfor %}
    from {{ side.from }} as {{ side.name }}
    where coalesce({{ side.start }} < {{ side.until }}, {{ begins }})
{{ '\nunion all\n\n' if begins == 'true' }}
    {%- endfor -%}
    {{ '\n\nunion all\n\n' if not loop.last }}
    {%- endfor -%}
{% endmacro %}
