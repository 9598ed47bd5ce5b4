{#
    Adds the facts that the history of spaces is `on`, `suspended` or `off` after the end of the
    log; `off` also removes the closed states. The fact is written first, so the operation can be
    repeated if it is killed in between.
#}
{% macro _switch_spaces(state, caller_name, call) %}
    {% set problems = [] %}
    {% set table = dbt_history._table_of_spaces(call, caller_name, problems) %}
    {% set spaces = [] %}
    {% if not problems %}
        {% set spaces = dbt_history._spaces_to_switch(table, call, state, problems) %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the history cannot be switched; nothing was done',
            got='\n    ' ~ problems | join('\n    '),
            expected='table: one table of feature states without branches; writes: its log, with'
                ~ ' the column txn and the key columns; space: values of the key column space, if'
                ~ ' the table has it',
        )) %}
    {% endif %}
    {% for space in spaces %}
        {% if space.is_new and not call.dry_run %}
            {% do dbt_history._add_mark(
                table, 'space_' ~ state, name=space.name, instant=space.since,
                author=call.author, reason=call.reason,
            ) %}
        {% endif %}
    {% endfor %}
    {% if state == 'off' and not call.dry_run %}
        {% do dbt_history._remove_recorded(table, spaces, caller_name) %}
    {% endif %}
    {% for space in spaces %}
        {% do log(
            'dbt_history: the history of ' ~ space.about ~ (' would be ' if call.dry_run
                else ' is ') ~ state ~ ' after transaction ' ~ space.since
            ~ (', closed states removed: ' ~ space.closed if state == 'off' else ''),
            info=true,
        ) %}
    {% endfor %}
{% endmacro %}


{#
    Removes the closed states of spaces that are off. The tags are read after the facts are written,
    and states that they name stay. So of a `create_tag` and this one sees the other:

        disable_space_history   off written             tags read     states removed
        create_tag                           written                  facts read: refused
#}
{% macro _remove_recorded(table, spaces, caller_name) %}
    {% set states = dbt_history._quoted_relation(table.relation) %}
    {% set recorded = dbt_history._recorded_before(table, spaces) %}
    {% set named = [] %}
    {% for tag in dbt_history._marks_of(table).tags %}
        {% do named.append(
            '(`txn` <= ' ~ tag.number ~ 'L and `txn_next` > ' ~ tag.number ~ 'L)'
        ) %}
    {% endfor %}
    {% do dbt_history._run_marked(
        'delete from ' ~ states ~ ' where ' ~ recorded
            ~ (' and not (' ~ named | join(' or ') ~ ')' if named else ''),
        {'history_operation': caller_name}, table, caller_name,
    ) %}
    {% set left = run_query(
        'select count(*) from ' ~ states ~ ' where ' ~ recorded
    ).rows[0][0] | int if named else 0 %}
    {% do log(
        'dbt_history: ' ~ table.name ~ ': ' ~ left ~ ' closed states are left for a tag that was'
            ~ ' created meanwhile: drop_tag, and repeat ' ~ caller_name,
        info=true,
    ) if left %}
{% endmacro %}


{# The table of states, with `space_column`; whatever it lacks is added to the problems. #}
{% macro _table_of_spaces(call, caller_name, problems) %}
    {% set tables = dbt_history._maintained(call.table, call.convention, call.key, caller_name) %}
    {% for table in tables %}
        {% if table.relation.is_iceberg %}
            {% do dbt_history._refuse_iceberg(
                table.relation, caller_name, 'a table of feature states in Delta',
            ) %}
        {% endif %}
        {% do dbt_history._find_namespace(table) %}
        {% if not table.namespace %}
            {% do problems.append(table.name ~ ': not a table of feature states') %}
        {% endif %}
        {% if 'branch' in table.key | map('lower') %}
            {% do problems.append(
                table.name ~ ': its key has the column branch: a branch reads its base from the'
                    ~ ' history of main'
            ) %}
        {% endif %}
        {% do table.update({'space_column': dbt_history._space_column(table.key)}) %}
        {% if call.space is none and table.space_column %}
            {% do problems.append(table.name ~ ': it holds several spaces: name one') %}
        {% elif call.space is not none and not table.space_column %}
            {% do problems.append(
                table.name ~ ': its key has no column space, so it holds one space: name none'
            ) %}
        {% endif %}
    {% endfor %}
    {% if tables | length > 1 %}{% do problems.append('one table of states at a time') %}{% endif %}
    {% set columns = dbt_history._table_columns(dbt_history._table_name(call.writes))
        | map(attribute='name') | map('lower') | list %}
    {% for name in ['txn'] + tables[0].key if name | lower not in columns %}
        {% do problems.append(call.writes ~ ': it has no column ' ~ name) %}
    {% endfor %}
    {% if 'history' in columns %}
        {% do problems.append(
            call.writes ~ ': its column history switches the history of spaces already'
        ) %}
    {% endif %}
    {% do return(tables[0]) %}
{% endmacro %}


{#
    The spaces of a call: [{'name', 'about', 'since', 'is_new', 'closed'}]; what speaks against the
    switch is added to the problems.
#}
{% macro _spaces_to_switch(table, call, state, problems) %}
    {% set log_name = dbt_history._table_name(call.writes) %}
    {% set states = dbt_history._quoted_relation(table.relation) %}
    {% set head = run_query('select coalesce(max(`txn`), 0) from ' ~ log_name).rows[0][0] | int %}
    {% set applied = run_query('select coalesce(max(`txn`), 0) from ' ~ states).rows[0][0] | int %}
    {% if applied > head %}
        {% do problems.append(
            call.writes ~ ': it ends at transaction ' ~ head ~ ', ' ~ table.name ~ ' at ' ~ applied
                ~ ': is it the log of this table?'
        ) %}
    {% endif %}
    {% if state == 'off' %}
        {% set taken = dbt_history._commit_log(
            table.relation, table.node.unique_id if table.node else none,
        ).last_batch %}
        {% set waiting = run_query(
            'select count(*) from ' ~ log_name ~ ' where `txn` > '
                ~ (taken if taken is not none else -1) ~ ' and `txn` <= ' ~ head
        ).rows[0][0] | int %}
        {% if waiting %}
            {% do problems.append(
                table.name ~ ': ' ~ waiting ~ ' writes up to transaction ' ~ head
                    ~ ' are not applied yet: run its model'
            ) %}
        {% endif %}
    {% endif %}
    {% set facts = dbt_history._space_facts(table.relation) %}
    {% set known = dbt_history._known_spaces(table, log_name, states) %}
    {% set spaces = [] %}
    {% for given in ([call.space] if call.space is string or call.space is not iterable
        else call.space) %}
        {% set name = given if given is none else given | string %}
        {% set own = facts | selectattr('space', 'equalto', name) | list %}
        {% set space = {
            'name': name, 'since': head | string, 'is_new': true,
            'about': ('space ' ~ name ~ ' in ' if name is not none else '') ~ table.name,
        } %}
        {% do spaces.append(space) %}
        {% do dbt_history._check_switch(
            space, state, own | last if own else none, problems,
        ) %}
        {% if name is not none and name not in known %}
            {% do problems.append(
                'no write and no state is of space ' ~ name
                    ~ dbt_history._did_you_mean(name, known)
            ) %}
        {% endif %}
        {% if state == 'off' %}
            {% do dbt_history._check_removal(table, space, states, problems) %}
        {% endif %}
        {% if state != 'on' and space.is_new %}
            {% do dbt_history._check_states_in_force(table, space, states, problems) %}
        {% endif %}
    {% endfor %}
    {% do return(spaces) %}
{% endmacro %}


{% macro _known_spaces(table, log_name, states) %}
    {% if not table.space_column %}{% do return([]) %}{% endif %}
    {% set column = dbt_history._quote(table.space_column) %}
    {% do return(run_query(
        'select cast(' ~ column ~ ' as string) as space from ' ~ log_name
            ~ ' union select cast(' ~ column ~ ' as string) from ' ~ states
    ).columns[0].values() | select('string') | list) %}
{% endmacro %}


{# A space that is in this state already; `off` may be repeated while closed states are left. #}
{% macro _check_switch(space, state, present, problems) %}
    {% if present is none %}
        {% do return(none) %}
    {% endif %}
    {% set said = 'the history of ' ~ space.about ~ ' is ' ~ present.state
        ~ ' after transaction ' ~ present.since %}
    {% if state == 'off' and present.state == 'off' %}
        {% do space.update({'is_new': false, 'since': present.since | string}) %}
    {% elif state == present.state %}
        {% do problems.append(said ~ ' already') %}
    {% elif state == 'suspended' and present.state == 'off' %}
        {% do problems.append(said ~ ': there is nothing to suspend') %}
    {% endif %}
{% endmacro %}


{# Counts the states that `off` removes; those that a tag names are a problem. #}
{% macro _check_removal(table, space, states, problems) %}
    {% set before = dbt_history._recorded_before(table, [space]) %}
    {% set row = run_query(
        'select count(*), coalesce(min(`txn`), 0), coalesce(max(`txn_next`), 0) from ' ~ states
            ~ ' where ' ~ before
    ).rows[0] %}
    {% do space.update({'closed': row[0] | int}) %}
    {% if not space.is_new and not space.closed %}
        {% do problems.append(
            'the history of ' ~ space.about ~ ' is off after transaction ' ~ space.since
                ~ ' already'
        ) %}
    {% endif %}
    {% for tag in dbt_history._marks_of(table).tags
        if row[1] | int <= tag.number < row[2] | int %}
        {% set named = run_query(
            'select count(*) from ' ~ states ~ ' where ' ~ before ~ ' and `txn` <= ' ~ tag.number
                ~ ' and `txn_next` > ' ~ tag.number
        ).rows[0][0] | int %}
        {% if named %}
            {% do problems.append(
                'the tag ' ~ tag.name ~ ' of ' ~ table.name ~ ' names ' ~ named
                    ~ ' states that would be removed: drop_tag first'
            ) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{#
    States in force that a tag names are a problem: without history the next write of the feature
    removes them.

        txn     50              100      | 120       121
        f       [ 50 ----------- tag ----| suspended [ 121 --       the state at the tag is gone
#}
{% macro _check_states_in_force(table, space, states, problems) %}
    {% for tag in dbt_history._marks_of(table).tags %}
        {% set named = run_query(
            'select count(*) from ' ~ states ~ ' where `txn_next` is null and `txn` <= '
                ~ tag.number ~ 'L' ~ dbt_history._of_space(table, space)
        ).rows[0][0] | int %}
        {% if named %}
            {% do problems.append(
                'the tag ' ~ tag.name ~ ' of ' ~ table.name ~ ' names ' ~ named
                    ~ ' states of ' ~ space.about ~ ' that the next writes would remove:'
                    ~ ' drop_tag first'
            ) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{# The closed states of spaces up to the end of their history, as a condition. #}
{% macro _recorded_before(table, spaces) %}
    {%- set terms = [] -%}
    {%- for space in spaces -%}
        {%- do terms.append(
            '`txn_next` <= ' ~ space.since ~ 'L' ~ dbt_history._of_space(table, space)
        ) -%}
    {%- endfor -%}
    {%- do return('((' ~ terms | join(') or (') ~ '))') -%}
{% endmacro %}


{# ` and <the state is of this space>`; empty if the table holds one space. #}
{% macro _of_space(table, space) %}
    {%- do return(
        ' and cast(' ~ dbt_history._quote(table.space_column) ~ ' as string) = '
            ~ dbt_history._string_literal(space.name) if space.name is not none else ''
    ) -%}
{% endmacro %}
