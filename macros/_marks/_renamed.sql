{#
    Moves the marks of a table that was renamed, in the run of the model that `continues` it: tags
    protect versions, and readers check the horizon, by the name of the table. The former name is
    that of the model that wrote the last batch:

        alter table shop.customers rename to shop.clients
        marks of customers    now of clients, in the first run of clients with `continues`

    If a view has the former name now, the marks are copied, because readers of the view look for
    its name. A mark of the kind `continues` records the copy: a tag that is moved or dropped later
    does not come back. If a table has the name, they stay. Of a model with an alias of its own the
    former name is not known.
#}
{% macro _take_over_marks(relation, owner, continues) %}
    {% set marks = dbt_history._marks(relation) if owner in continues else none %}
    {% if marks is none %}{% do return(none) %}{% endif %}
    {% set former = owner.split('.')[2:] | join('_') | lower %}
    {% set is_former = 'table_name = ' ~ dbt_history._string_literal(former) %}
    {% if former == relation.identifier | lower
        or not dbt_history._count_rows(marks, is_former) %}
        {% do return(none) %}
    {% endif %}
    {% set other = load_relation(relation.incorporate(path={'identifier': former})) %}
    {% if other is not none and not other.is_view %}
        {% do dbt_history._log_info(
            'continues', relation, 'does not take the tags, horizon and other marks of ' ~ former
                ~ ': a table has this name',
        ) %}
        {% do return(none) %}
    {% elif other is not none %}
        {% set name = dbt_history._string_literal(relation.identifier | lower) %}
        {% set is_copied = "kind = 'continues' and table_name = " ~ name ~ ' and name = '
            ~ dbt_history._string_literal(former) %}
        {% if dbt_history._count_rows(marks, is_copied) %}{% do return(none) %}{% endif %}
        {% do run_query(
            'insert into ' ~ dbt_history._quoted_relation(marks)
                ~ ' (kind, table_name, name, instant, table_version, author, reason, recorded_at,'
                ~ ' invocation_id) select kind, ' ~ name ~ ', name, instant, table_version,'
            ~ ' author, reason, recorded_at, invocation_id from '
                ~ dbt_history._quoted_relation(marks) ~ ' where ' ~ is_former
                ~ " and kind <> 'continues' union all select 'continues', " ~ name ~ ', '
                ~ dbt_history._string_literal(former) ~ ', null, null, null, null,'
            ~ ' current_timestamp(), ' ~ dbt_history._string_literal(invocation_id)
        ) %}
    {% else %}
        {% do run_query(
            'update ' ~ dbt_history._quoted_relation(marks) ~ ' set table_name = '
                ~ dbt_history._string_literal(relation.identifier | lower) ~ ' where ' ~ is_former
        ) %}
    {% endif %}
    {% do dbt_history._log_info(
        'continues', relation, 'has the tags, horizon and other marks of ' ~ former,
    ) %}
{% endmacro %}
