{#
    The columns of x and x_history, their order and their types are those of ESQL's X and X.History.
    A uuid of ESQL is a string here, a datetime a timestamp.
#}
{%- set found -%}
(
    select 'X' as `table`, typeof(struct(*)) as columns
    from (select * from {{ source('esql', 'x') }} limit 1)
    union all
    select 'X.History' as `table`, typeof(struct(*)) as columns
    from (select * from {{ ref('x_history') }} limit 1)
)
{%- endset -%}
{%- set documented -%}
(
    select
        `table`,
        concat(
            'struct<',
            concat_ws(',', transform(
                array_sort(collect_list(struct(
                    position,
                    concat(
                        `column`, ':',
                        case type when 'uuid' then 'string' when 'datetime' then 'timestamp' else type end
                    ) as declared
                ))),
                one -> one.declared
            )),
            '>'
        ) as columns
    from {{ ref('esql_tables_documented') }}
    group by `table`
)
{%- endset -%}
{{ dbt_history.test_matches_expected(found, documented) }}
