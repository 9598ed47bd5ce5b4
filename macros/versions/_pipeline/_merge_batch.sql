{#
    A plan as one MERGE: each row of the source is one operation on one stored version, or a new
    version.
#}
{% macro _merge_sql(batch) %}
    {%- set plan, settings, columns = batch.plan, batch.settings, batch.columns -%}
    {%- set convention = settings.convention -%}
    {%- set identity = dbt_history._identity_columns(convention) -%}
    {%- set period = [convention.end, convention.active] | reject('none') | list -%}
    {%- set names = columns | map(attribute='name') | list -%}
    merge into {{ dbt_history._quoted_relation(batch.get('place') or batch.target) }} as history
    using (
        with {{ dbt_history._resolved(batch) | indent(8) }}

        select
            op
            {%- for name in identity %},
            {#- NULL for an added row, so that it matches no version; its key stays for the join. #}
            if(
                op in ('add', 'skip'),
                null,
                {{ 'at' if loop.first else dbt_history._prefixed(name) }}
            ) as {{ dbt_history._quote('match_' ~ name) }}
            {%- endfor %}
            {%- for name in names %},
            {{ dbt_history._prefixed(name) }}
            {%- endfor %}
        from resolved
        where op is not null
    ) as operations
    on
        {{ dbt_history._target_prune_predicate(convention, plan, 'history') }}
        {%- if plan.get('key_bits') %}
        and {{ dbt_history._key_bitmap_predicate(plan.key_bits, settings, 'history') }}
        {%- endif %}
        {%- for name in settings.key %}
        and history.{{ dbt_history._quote(name) }} = operations.{{ dbt_history._prefixed(name) }}
        {%- endfor %}
        {%- for name in identity %}
        and history.{{ dbt_history._quote(name) }}
            = operations.{{ dbt_history._quote('match_' ~ name) }}
        {%- endfor %}
    when matched and operations.op = 'remove' then delete
    when matched and operations.op = 'close' then update set
        {%- for name in period %}
        {{ dbt_history._quote(name) }}
            = operations.{{ dbt_history._prefixed(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    when matched and operations.op = 'replace' then update set
        {%- for name in names %}
        {{ dbt_history._quote(name) }}
            = operations.{{ dbt_history._prefixed(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    when not matched and operations.op = 'add' then insert (
        {%- for name in names %}
        {{ dbt_history._quote(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    ) values (
        {%- for name in names %}
        operations.{{ dbt_history._prefixed(name) }}{{ ',' if not loop.last }}
        {%- endfor %}
    )
    -- If the version of an operation is not found, the statement fails and commits nothing.
    when not matched and operations.op in ('remove', 'close', 'replace')
        then insert ({{ dbt_history._quote(convention.end) }})
    values (
        cast(raise_error('dbt_history: a version to change was not found') as {{ convention.type }})
    )
{%- endmacro %}


{#
    A batch's keys as a bitmap: one bit for each value of a hash. The plan query computes it in its
    one pass, and the merge filters by it before its join (docs/decisions/0079-keys-as-a-bitmap.md).
    The bitmap is returned as hexadecimal text, of which four bytes are read as one number; `^ 24`
    reverses the order of the four, so that a bit's place in the number is its place by the hash:

        key  'a' -> hash 68 -> word 68 div 32 = 2, bit 68 % 32 = 4     place in the bitmap: 68 ^ 24
             = 92, byte 11, bit 4
        bytes  ..  08 09 0A 0B  ..
        word 2     00 00 00 10   = 16 = 1 << 4

    Other keys with the same bit are removed by the join. If a bit were missing for a key of the
    batch, its version would not be found, and the merge would fail, because an operation whose
    version is not found raises an error. So a wrong bitmap cannot lose rows.
#}
{% macro _key_bitmap_size() %}
    {% do return(32768) %}
{% endmacro %}


{#
    The bitmap of the places in a column, as hexadecimal text. NULL if more than a quarter of its
    bits are set, because it would filter few rows, and if none is, because the keys have no places.
#}
{% macro _key_bitmap(place) %}
    {%- set bitmap = 'bitmap_construct_agg(' ~ place ~ ')' -%}
    {%- do return(
        'if(bitmap_count(' ~ bitmap ~ ') between 1 and ' ~ dbt_history._key_bitmap_size() // 4
            ~ ', hex(' ~ bitmap ~ '), null)'
    ) -%}
{% endmacro %}


{% macro _key_bitmap_place(settings, columns) %}
    {%- set names = settings.key | map('lower') | list -%}
    {%- for column in columns
        if column.name | lower in names and 'collate' in column.type | lower -%}
        {%- do return('cast(null as bigint)') -%}
    {%- endfor -%}
    {%- do return(
        dbt_history._hash_place(dbt_history._all_prefixed(settings.key)) ~ ' ^ 24'
    ) -%}
{% endmacro %}


{% macro _key_bitmap_predicate(bitmap, settings, alias) %}
    {%- set keys = [] -%}
    {%- for name in settings.key -%}
        {%- do keys.append(alias ~ '.' ~ dbt_history._quote(name)) -%}
    {%- endfor -%}
    {%- set place = dbt_history._hash_place(keys) -%}
    {%- set words, places = [], [] -%}
    {%- for start in range(0, bitmap | length, 8) -%}
        {%- set word = bitmap[start:start + 8] | int(base=16) -%}
        {%- do words.append(word) -%}
        {%- for bit in '{:b}'.format(word)[::-1] -%}
            {%- do places.append(start * 4 + loop.index0) if bit == '1' -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if places | length <= 64 -%}
        {%- do return(place ~ ' in (' ~ places | join(', ') ~ ')') -%}
    {%- endif -%}
    {#- One text instead of a thousand literals, which Spark would parse slowly. -#}
    {%- set list = "cast(split('" ~ words | join(',') ~ "', ',') as array<bigint>)" -%}
    {%- do return(
        'getbit(' ~ list ~ '[cast(' ~ place ~ ' div 32 as int)], cast(' ~ place
            ~ ' % 32 as int)) = 1'
    ) -%}
{% endmacro %}


{% macro _hash_place(keys) %}
    {%- do return(
        'pmod(xxhash64(' ~ keys | join(', ') ~ '), ' ~ dbt_history._key_bitmap_size() ~ ')'
    ) -%}
{% endmacro %}
