{#
    The changes in a range of transactions, as a sub-query for the FROM clause: one row per feature
    and transaction, its last state there; with `squash` one row per feature, its last state in the
    range.

        txn             1       2       3       4
        a               CREATE  UPDATE
        b               CREATE          DELETE  CREATE
        2 to 3, full            a upd.  b del.
        1 to 3, squash  a updated, b deleted            the action of the last state

    Rows have all columns of the states, and `change`: inserted, updated or deleted. For paging,
    `limit` returns rows in the order of `i`, and the next page is `after` the last `i` of the
    previous one. A time means the last transaction that is not later, as in `transaction_at`, also
    where times do not increase:

        txn             1       2       3       4
        time            10:00   12:00   11:00   13:00
        until 11:30     x       x       x               3 is the last one not later
        after 11:30                             x

    A range that begins at or below the retention horizon fails, as in `changeset`. One without a
    start has what is left of earlier changes.

    `purges` adds the action PURGE: the tombstone once more with `change` purged, in
    the transaction of the purge, which is its `purged_txn`. Bounds are transactions then.
#}
{% macro feature_changes(
    states, id='id', from_txn=none, to_txn=none, after_time=none, until_time=none, author=none,
    squash=false, after=none, limit=none, where=none, namespace='@ns:com:here:xyz', purges=false
) %}
    {%- set xyz = dbt_history._quote(namespace) -%}
    {%- if purges and (after_time, until_time, author, after, limit) | reject('none') | list -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'feature_changes', 'of a purge only the transaction is known',
            got='purges with after_time, until_time, author, after or limit',
            expected='from_txn and to_txn', node=dbt_history._node_of_context(),
        )) -%}
    {%- endif -%}
    {%- set txn = '`__change_txn`' if purges else '`txn`' -%}
    {%- set bounds = dbt_history._range_of_txns(txn, from_txn, to_txn, 'feature_changes') -%}
    {%- set terms, starts, ends = bounds.terms, bounds.starts, bounds.ends -%}
    {%- for operator, time in [['>', after_time], ['<=', until_time]] if time is not none -%}
        {%- set last = '(select coalesce(max(`txn`), -1L) from '
            ~ dbt_history._states_until(states, namespace, time, 'feature_changes') ~ ')' -%}
        {%- do terms.append(txn ~ ' ' ~ operator ~ ' ' ~ last) -%}
        {%- do starts.append(last ~ ' + 1L') if operator == '>' else ends.append(last) -%}
    {%- endfor -%}
    {%- do terms.extend(
        dbt_history._not_cleaned_from(states, starts, ends, 'feature_changes')
    ) -%}
    {%- if author is not none -%}
        {%- do terms.append(xyz ~ '.`author` = ' ~ dbt_history._string_literal(author)) -%}
    {%- endif -%}
    {%- if where is not none -%} {%- do terms.append('(' ~ where ~ ')') -%} {%- endif -%}
    {%- set sql -%}
(
    select
        * except (`__place`{{ ', `__change_txn`, `__is_purge`' if purges }}),
        case {{ "if(`__is_purge`, 'PURGE', " ~ xyz ~ '.`action`)' if purges
            else xyz ~ '.`action`' }}
            when 'CREATE' then 'inserted'
            when 'UPDATE' then 'updated'
            {%- if purges %}
            when 'PURGE' then 'purged'
            {%- endif %}
            else 'deleted'
        end as `change`
    from (
        select
            *,
            row_number() over (
                partition by
                    {{ dbt_history._quoted(dbt_history._key_columns(id)) | join(', ') }}
                    {{- '' if squash else ', ' ~ txn }}
                order by {{ '`__change_txn` desc, `i` desc, `__is_purge` desc' if purges
                    else '`i` desc' }}
            ) as `__place`
        from {{ dbt_history._with_purges(states) if purges else states }}
        where {{ terms | join('\n            and ') }}
    ) as ranked
    where `__place` = 1
    {%- if after is not none %} and `i` > {{ after | int }}L{% endif %}
    {%- if limit is not none %}
    order by `i`
    limit {{ limit | int }}
    {%- endif %}
)
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}


{# The states of transactions with a time up to this one, for the FROM clause. #}
{% macro _states_until(states, namespace, time, caller_name) %}
    {%- do return(
        states ~ ' where ' ~ dbt_history._quote(namespace) ~ '.`updatedAt` <= unix_millis('
            ~ dbt_history._instant(time, {'type': 'timestamp'}, caller_name) ~ ')'
    ) -%}
{% endmacro %}


{#
    Each state once, and each purged tombstone once more: `__change_txn` and `__is_purge` tell when.
#}
{% macro _with_purges(states) %}
    {%- set sql -%}
(
            select *, if(`__is_purge`, `purged_txn`, `txn`) as `__change_txn`
            from {{ states }}
            lateral view explode(
                if(`purged_txn` is null, array(false), array(false, true))
            ) as `__is_purge`
        ) as changes
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
