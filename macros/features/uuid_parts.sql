{#
    The parts of a UUID of `uuid_of`, as SQL: struct<object_id bigint, date date, type int,
    database_id bigint>. Text that is not such a UUID (another version or variant, a day that does
    not exist, no UUID at all) is an error when the SQL runs, or NULL with `otherwise='null'`. NULL
    gives NULL.
#}
{% macro uuid_parts(uuid, otherwise='fail') %}
    {%- if otherwise not in ['fail', 'null'] -%}
        {%- do exceptions.raise_compiler_error(dbt_history._message(
            'uuid_parts', 'otherwise sets the result for text that is not the UUID of a state',
            got=otherwise, expected='fail or null',
        )) -%}
    {%- endif -%}
    {%- set uuid = '(' ~ uuid ~ ')' -%}
    {%- set text = 'lower' ~ uuid -%}
    {%- set half = "cast(conv(substring(" ~ text ~ ", 20, 4), 16, 10) as int)" -%}
    {%- set tail = "cast(conv(substring(" ~ text ~ ", 25, 12), 16, 10) as bigint)" -%}
    {%- set day -%}
try_cast(
    format_string(
        '%04d-%02d-%02d',
        2000 + (shiftright({{ half }}, 4) & 1023),
        {{ half }} & 15,
        cast(shiftright({{ tail }}, 43) as int)
    ) as date
)
    {%- endset -%}
    {%- set sql -%}
case
    when {{ uuid }} is null then null
    {#- In a pattern `$` also matches before a line break at the end. #}
    when length({{ text }}) = 36
        and {{ text }} rlike '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
        and {{ day }} is not null
        then named_struct(
            'object_id', cast(conv(concat(
                substring({{ text }}, 1, 8),
                substring({{ text }}, 10, 4),
                substring({{ text }}, 16, 3)
            ), 16, 10) as bigint),
            'date', {{ day }},
            'type', cast(shiftright({{ tail }}, 40) & 7 as int),
            'database_id', {{ tail }} & 1099511627775L
        )
    {%- if otherwise == 'fail' %}
    else raise_error(concat('dbt_history.uuid_parts: this is no UUID of a state: ', {{ uuid }}))
    {%- endif %}
end
    {%- endset -%}
    {%- do return(sql) -%}
{% endmacro %}
