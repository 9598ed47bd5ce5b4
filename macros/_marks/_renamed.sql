{#
    Moves the marks of a table that was renamed, in the run of the model that `continues` it: tags
    protect versions, and readers check the horizon, by the name of the table. The former name is
    that of the model that wrote the last batch, if no table of the schema has it any more:

        alter table shop.customers rename to shop.clients
        marks of customers    now of clients, in the first run of clients with `continues`

    Of a model with an alias of its own the former name is not known.
#}
{% macro _take_over_marks(relation, owner, continues) %}
    {% set marks = dbt_history._marks(relation) if owner in continues else none %}
    {% if marks is none %}{% do return(none) %}{% endif %}
    {% set former = owner.split('.')[2:] | join('_') | lower %}
    {% set is_former = 'table_name = ' ~ dbt_history._string_literal(former) %}
    {% if former == relation.identifier | lower
        or load_relation(relation.incorporate(path={'identifier': former})) is not none
        or not dbt_history._count_rows(marks, is_former) %}
        {% do return(none) %}
    {% endif %}
    {% do run_query(
        'update ' ~ dbt_history._quoted_relation(marks) ~ ' set table_name = '
            ~ dbt_history._string_literal(relation.identifier | lower) ~ ' where ' ~ is_former
    ) %}
    {% do dbt_history._log_info(
        'continues', relation, 'has the tags, horizon and other marks of ' ~ former,
    ) %}
{% endmacro %}
