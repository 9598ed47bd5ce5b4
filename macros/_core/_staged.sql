{# The SELECT as a temporary view: its errors are raised here, and its columns become known. #}
{% macro _staged_view(select_sql) %}
    {% set id = local_md5(model.unique_id ~ invocation_id ~ modules.datetime.datetime.now())[:8] %}
    {% set view = dbt_history._quote(model.name ~ '__staged_' ~ id) %}
    {% call statement('create_staged_view') %}
        create temporary view {{ view }} as
        {{ select_sql }}
    {% endcall %}
    {% set columns = [] %}
    {% set names = {} %}
    {% for column in dbt_history._table_columns(view) %}
        {% do columns.append({'name': column.name, 'type': column.type}) %}
        {% do names.update({column.name | lower: column.name}) %}
    {% endfor %}
    {% do return({
        'id': id, 'view': view, 'relation': view, 'is_table': false, 'columns': columns,
        'names': names,
    }) %}
{% endmacro %}


{#
    Whether the SELECT has got columns since its view was made. Its rows may be newer than the view,
    whose columns are fixed:

        source     a, b                ALTER: a, b, c    batch 9, with c
        this run           view: a, b                                       rows of batch 9: a, b

    Not asked where this package generates the SELECT, which names its columns.
#}
{% macro _has_new_columns(select_sql, staged) %}
    {% for name in ['capture', 'batch', 'writes'] if dbt_history._notes(name, select_sql) %}
        {% do return(false) %}
    {% endfor %}
    {% for row in run_query('describe query ' ~ select_sql).rows
        if row[0] | lower not in staged.names %}
        {% do return(true) %}
    {% endfor %}
    {% do return(false) %}
{% endmacro %}


{% macro _drop_staged(staged) %}
    {% if staged.relation != staged.view %}
        {% do run_query(
            'drop ' ~ ('table' if staged.is_table else 'view') ~ ' if exists ' ~ staged.relation
        ) %}
    {% endif %}
    {% do run_query('drop view if exists ' ~ staged.view) %}
{% endmacro %}


{% macro _refuse_columns(problems, staged, caller_name) %}
    {% if problems %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'the columns of the SELECT do not fit this table; nothing was written',
            got='\n    ' ~ problems | join('\n    '),
            node=model.unique_id,
            way_out='cast or name the columns in the model (a cast says which time zone, which'
                ~ ' precision)',
        )) %}
    {% endif %}
{% endmacro %}


{# A column of untyped NULLs (type void), also within a type, cannot be stored in a table. #}
{% macro _check_void_columns(columns) %}
    {% set problems = [] %}
    {% for column in columns if column.type == 'void' %}
        {% do problems.append('column ' ~ column.name ~ ' has no type: cast the NULL') %}
    {% endfor %}
    {% for column in columns
        if modules.re.search('[<,:]void[>,]', column.type | replace(' ', '')) %}
        {% do problems.append(
            'column ' ~ column.name ~ ' is ' ~ column.type
                ~ ': cast it to a type without void (an untyped NULL or empty array)'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{# `partition_by` of a new table names its columns, or on Iceberg transforms of them. #}
{% macro _check_partitions(columns, target) %}
    {% set said = config.get('partition_by') or [] %}
    {% set names = columns | map(attribute='name') | map('lower') | list %}
    {% set problems = [] %}
    {% for name in ([said] if said is string or said is mapping else said)
        if name is not string
            or (name | lower not in names and not (target.is_iceberg and '(' in name)) %}
        {% do problems.append(
            'partition_by names ' ~ name ~ ', which is no column of the table'
                ~ (dbt_history._did_you_mean(name, names) if name is string)
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}
