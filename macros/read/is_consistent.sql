{#
    Whether one own id per table is a consistent version of all the tables: no row within its bound
    links to a row beyond the bound of its table.

        orders_hx     1 -> customer 1    2 -> customer 3
        bounds        {'orders_hx': 2, 'customers_hx': 2}
        result        false: order 2 links to customer 3, which is beyond the bound

    `collections`: as in `history_tuple`; `references` lists the links of a collection as `hx_rows`
    takes them: {'history': ref('customers_hx')}, with `name` where the link column is not
    `customers_hx_id`. Returns a sub-query of one row and one column, `is_consistent`: for the FROM
    clause, or as a value.
#}
{% macro is_consistent(collections, bounds) %}
    {#- While dbt parses, a ref returns the name of the model that contains it. -#}
    {%- if not execute -%} {%- do return('(select true as is_consistent)') -%} {%- endif -%}
    {%- set links = [] -%}
    {%- set unknown = [] -%}
    {%- for collection in dbt_history._collections(collections, 'is_consistent') -%}
        {%- do unknown.append(collection.name) if collection.name not in bounds -%}
        {%- for reference in collection.references -%}
            {%- set link = dbt_history._hx_id(reference.history, none, 'is_consistent') -%}
            {%- do unknown.append(link[:-3]) if link[:-3] not in bounds -%}
            {%- do links.append(
                'select coalesce(max(' ~ dbt_history._quote(reference.get('name') or link) ~ ') <= '
                    ~ bounds.get(link[:-3])
                ~ ', true) as is_within\n        from ' ~ collection.from
                    ~ ' as log\n        where '
                ~ collection.id ~ ' <= ' ~ bounds.get(collection.name)
            ) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if unknown -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'is_consistent', 'tables without a bound', got=unknown | unique | join(', '),
            expected='a bound for each of them, by its name',
        )) -%}
    {%- endif -%}
    {%- do return(
        '(\n    select coalesce(bool_and(is_within), true) as is_consistent\n    from (\n        '
        ~ (links | join('\n\n        union all\n\n        ') or 'select true as is_within')
            ~ '\n    ) as links\n)'
    ) -%}
{% endmacro %}
