{#
    The tables of feature states: with `all` only these are selected, in a list each table must be
    one.
#}
{% macro _spaces(table, convention, key) %}
    {% set spaces = [] %}
    {% set problems = [] %}
    {% for found in dbt_history._maintained(table, convention, key, 'create_snapshot') %}
        {% do dbt_history._find_namespace(found) %}
        {% if found.namespace %}
            {% do spaces.append(found) %}
        {% elif table != 'all' %}
            {% do problems.append(found.name ~ ': not a table of feature states') %}
        {% endif %}
    {% endfor %}
    {% if problems or not spaces %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'create_snapshot', 'not every table is a space; nothing was done',
            got='\n    ' ~ (problems or ['no table of feature states']) | join('\n    '),
            expected='tables that feature_states fills',
        )) %}
    {% endif %}
    {% do return(spaces) %}
{% endmacro %}


{#
    The one transaction for all spaces: the one given; else that of the snapshot if some spaces have
    it; else the last transaction of any space. `tagged` of a table is the number that its snapshot
    has, none if it has none.
#}
{% macro _point_of_snapshot(tables, snapshot, at, writes, problems) %}
    {% set heads = [0] %}
    {% set known = [] %}
    {% for table in tables %}
        {% do heads.append(dbt_history._head_of_states(table.relation)) %}
        {% if dbt_history._writes_of(table, writes) is not none %}
            {% do heads.append(
                run_query(
                    'select coalesce(max(`txn`), 0) from ' ~ dbt_history._writes_of(table, writes)
                ).rows[0][0]
            ) %}
        {% endif %}
        {% do table.update({'tagged': dbt_history._number_of_tag(table, snapshot)}) %}
        {% do known.append(table.tagged) if table.tagged is not none %}
    {% endfor %}
    {% set head = heads | map('int') | max %}
    {% set is_complete = known | length == tables | length %}
    {% set point = dbt_history._evaluated_point(at, tables[0], 'create_snapshot') | int
        if at is not none
        else known[0] if known and not is_complete else head %}
    {% if not 0 <= point <= head %}
        {% do problems.append(
            'transaction ' ~ point ~ ' does not exist: the last one is ' ~ head
        ) %}
    {% endif %}
    {% for table in tables if table.tagged is not none and table.tagged != point %}
        {% do problems.append(
            table.name ~ ': the snapshot exists already, at ' ~ table.tagged ~ ', not ' ~ point
        ) %}
    {% endfor %}
    {% do return(point) %}
{% endmacro %}


{#
    Checks that a space can get the snapshot at this point; a space that has it at this point
    already is skipped.
#}
{% macro _check_space(table, point, writes, problems) %}
    {% if table.tagged is not none %} {% do return(none) %} {% endif %}
    {% do dbt_history._check_above_retention_horizon(
        table, dbt_history._marks_of(table), problems,
    ) %}
    {% set source = dbt_history._writes_of(table, writes) %}
    {% if source is not none %}
        {% set taken = dbt_history._commit_log(
            table.relation, table.node.unique_id if table.node else none,
        ).last_batch %}
        {% set waiting = run_query(
            'select count(*) from ' ~ source ~ ' where `txn` > '
                ~ (taken if taken is not none else -1) ~ ' and `txn` <= ' ~ point
        ).rows[0][0] | int %}
        {% if waiting %}
            {% do problems.append(
                table.name ~ ': ' ~ waiting ~ ' writes up to ' ~ point
                    ~ ' are not applied yet: run its model'
            ) %}
        {% endif %}
    {% endif %}
{% endmacro %}


{# The log of a table's writes as a relation or sub-query; none if it was not given. #}
{% macro _writes_of(table, writes) %}
    {% set said = writes.get(table.name) if writes is mapping else writes %}
    {% if said is none or said is undefined %}
        {% do return(none) %}
    {% endif %}
    {% do return(
        said ~ ' as entries' if said is string and '(' in said else dbt_history._table_name(said)
    ) %}
{% endmacro %}


{# The transaction of a tag of the table, none if there is no such tag. #}
{% macro _number_of_tag(table, tag) %}
    {% set found = dbt_history._marks_of(table).tags | selectattr('name', 'equalto', tag) | list %}
    {% do return(found[0].number if found else none) %}
{% endmacro %}


{% macro _refuse_snapshot(snapshot, problems) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'create_snapshot', 'the snapshot ' ~ snapshot ~ ' cannot be made; no table got it',
            got='\n    ' ~ problems | join('\n    '),
            way_out='run the models, choose a transaction at or after the horizons, or drop_tag'
                ~ ' first',
        )) %}
    {% endif %}
{% endmacro %}


{#
    Sets `namespace` of the table: the namespace column of feature states, none for any other table.
#}
{% macro _find_namespace(table) %}
    {% set is_numbered = table.convention.name == 'naksha' %}
    {% do table.update({
        'namespace': dbt_history._namespace_of(dbt_history._table_columns(table.relation))
            if is_numbered else none
    }) %}
{% endmacro %}


{#
    The last transaction that a table of states shows, 0 if none. A purge makes no state: its number
    is in the tombstone.
#}
{% macro _head_of_states(relation) %}
    {% do return(run_query(
        'select coalesce(greatest(max(`txn`), max(`purged_txn`)), 0) from '
            ~ dbt_history._quoted_relation(relation)
    ).rows[0][0] | int) %}
{% endmacro %}
