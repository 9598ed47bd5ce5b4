{# SQL literals of the event codes, by kind of change. #}
{% macro _event_codes(codes, caller_name) %}
    {% set known = {
        'integer': {'insert': '1', 'delete': '2', 'update_preimage': '3', 'update_postimage': '4'},
        'letters': {
            'insert': "'I'", 'delete': "'D'", 'update_preimage': "'F'", 'update_postimage': "'T'",
        },
    } %}
    {% if codes not in known %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'there are no such codes', got=codes, expected=known.keys() | join(', '),
            node=model.unique_id,
        )) %}
    {% endif %}
    {% do return(known[codes]) %}
{% endmacro %}


{#
    SQL: the kind of change of a row of the inbox (`temp`) in the codes of the coarse log. An update
    is one row there, and both halves of it in the event table; `gap`: see `core_temp_history`.
#}
{% macro _coarse_event(codes, caller_name) %}
    {% set known = {
        'integer': {'insert': '1', 'delete': '2', 'update': '3', 'gap': '0'},
        'letters': {'insert': "'I'", 'delete': "'D'", 'update': "'U'", 'gap': "'G'"},
        'words': none,
    } %}
    {% if codes not in known %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'there are no such codes', got=codes, expected=known.keys() | join(', '),
            node=model.unique_id,
        )) %}
    {% endif %}
    {% if known[codes] is none %}
        {% do return('temp.event') %}
    {% endif %}
    {% set cells = [] %}
    {% for word, code in known[codes].items() %}
        {% do cells.append('when ' ~ dbt_history._string_literal(word) ~ ' then ' ~ code) %}
    {% endfor %}
    {% do return('case temp.event ' ~ cells | join(' ') ~ ' end') %}
{% endmacro %}


{#
    SQL: the transaction of a change: `transaction` in the writer's commit metadata (JSON), else
    table and version.
#}
{% macro _transaction_id(capture) %}
    {%- set own = 'concat(' ~ dbt_history._string_literal(dbt_history._name_of_versions(capture))
        ~ ', cast(`_commit_version` as string))' -%}
    {%- set said = dbt_history._by_version(
        dbt_history._attribution_of_versions(capture, 'transaction'), '`_commit_version`',
    ) -%}
    {%- do return('coalesce(' ~ said ~ ', ' ~ own ~ ')' if said is not none else own) -%}
{% endmacro %}


{# What a version follows in the id of a transaction: the table, and its generation from 2 on. #}
{% macro _name_of_versions(capture) %}
    {%- set generation = capture.get('generation') -%}
    {%- do return(
        capture.source.replace('`', '') ~ ('#' ~ generation if generation else '') ~ ':'
    ) -%}
{% endmacro %}


{% macro _refuse_event_columns(capture) %}
    {% set wrong = [] %}
    {% for column in capture.columns
        if column.name | lower in ['_hist_trans_id', '_hist_event', '_hist_user', '_hist_time'] %}
        {% do wrong.append(column.name) %}
    {% endfor %}
    {% if wrong %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'event_rows',
            'columns of ' ~ capture.relation ~ ' have names that the event table needs',
            got=wrong | join(', '), node=model.unique_id,
            way_out='rename these columns in a view, and read the view',
        )) %}
    {% endif %}
{% endmacro %}


{#
    The columns of a Delta source that cannot be NULL in the rows of the capture; unique and foreign
    keys are not carried over. A column has to be NOT NULL in the last version of each part that is
    read, which has all its rows, and in the known state:

        source    c not null   c nullable, a row with NULL   restored: c not null
        parts     taken        ] part ----------------------] part -------------]   c may be NULL
#}
{% macro _not_null_columns(capture) %}
    {% if not capture.head.is_delta %}
        {% do return([]) %}
    {% endif %}
    {% set found = namespace(
        names=dbt_history._not_null_in(capture.table, capture.head_columns),
    ) %}
    {% set diff = capture.diff or {} %}
    {% set parts = [{'to': diff.version, 'columns': diff.columns}] if diff else [] %}
    {% for part in parts + capture.segments if part.to != capture.head.version %}
        {% set found.names = dbt_history._names_in_both(found.names, dbt_history._not_null_in(
            capture.table ~ ' version as of ' ~ part.to, part.columns,
        )) %}
    {% endfor %}
    {% do return(
        dbt_history._names_in_both(
            found.names, diff.state_columns | map(attribute='name') | list,
        ) if diff.get('state') else found.names
    ) %}
{% endmacro %}
