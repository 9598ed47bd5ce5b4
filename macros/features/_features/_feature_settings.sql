{#
    Checks the arguments of `feature_states` against the columns of the log. Returns {'writes',
    'key', 'payload', 'json', 'names': {meaning: quoted column}, defaults of the options};
    `_pending_writes` adds what depends on the pending writes, such as 'state_type'.
#}
{% macro _feature_settings(writes, options, caller_name) %}
    {% do dbt_history._refuse_ephemeral(writes, caller_name) %}
    {% set types = {} %}
    {% set spelled = {} %}
    {% for column in dbt_history._table_columns(writes) %}
        {% do types.update({column.name | lower: column.type}) %}
        {% do spelled.update({column.name | lower: column.name}) %}
    {% endfor %}
    {% set problems = [] %}
    {% set meanings = dbt_history._write_columns() %}
    {% set names = {} %}
    {% for meaning in options.columns if meaning not in meanings %}
        {% do problems.append(
            'columns names ' ~ meaning ~ ', which a write does not have (known: '
                ~ meanings.keys() | join(', ') ~ ')'
        ) %}
    {% endfor %}
    {% for meaning, need in meanings.items() %}
        {% set name = options.columns.get(meaning, meaning) %}
        {% if name | lower in types %}
            {% do names.update({meaning: dbt_history._quote(spelled[name | lower])}) %}
        {% elif need.required or meaning in options.columns %}
            {% do problems.append('the log has no column ' ~ name ~ ' (' ~ need.about ~ ')') %}
        {% endif %}
    {% endfor %}
    {% set key = dbt_history._key_columns(options.id) %}
    {% set taken = names.values() | map('replace', '`', '') | map('lower') | list
        + key | map('lower') | list %}
    {% set payload = options.payload %}
    {% if payload is none %}
        {% set payload = spelled.values() | list %}
        {% set rest = [] %}
        {% for name in payload if name | lower not in taken %}{% do rest.append(name) %}{% endfor %}
        {% set payload = rest %}
    {% endif %}
    {% set payload = dbt_history._key_columns(payload) %}
    {% set json = dbt_history._key_columns(options.json) %}
    {% for name in key + payload if name | lower not in types %}
        {% do problems.append('the log has no column ' ~ name) %}
    {% endfor %}
    {% for name in json if name | lower not in payload | map('lower') | list %}
        {% do problems.append('json names ' ~ name ~ ', which is not in payload') %}
    {% endfor %}
    {% set own = [
        'i', 'txn', 'txn_next', 'author_txn', 'created_txn', 'purged_txn', 'resync',
        options.namespace | lower, '_stage', '_batch', '_order',
    ] %}
    {% for name in key + payload if name | lower in own %}
        {% do problems.append(
            name ~ ' is a column of the states themselves: rename it in the log'
        ) %}
    {% endfor %}
    {% for name, value, known in [
        ['mode', options.mode, ['all_or_nothing', 'per_row']],
        ['noop_updates', options.noop_updates, ['record', 'skip']],
        ['history', options.history, ['on', 'off']],
        ['auto_purge', options.auto_purge, [true, false]],
    ] if value not in known %}
        {% do problems.append(name ~ ' is ' ~ value ~ ': ' ~ known | join(' or ')) %}
    {% endfor %}
    {% if options.keep_states is not none
        and (options.keep_states is not number or options.keep_states < 1) %}
        {% do problems.append(
            'keep_states is ' ~ options.keep_states
                ~ ': 1 or more, or none for all (history: off keeps no earlier state)'
        ) %}
    {% endif %}
    {% if not payload %}
        {% do problems.append('payload is empty: a state has no content') %}
    {% endif %}
    {% if not key %}
        {% do problems.append('id is empty: name the columns that tell features apart') %}
    {% endif %}
    {% if options.branches is not none and 'branch' not in key | map('lower') %}
        {% do problems.append(
            'with branches, id must include the column branch'
        ) %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the log of writes or the arguments are not valid',
            got='\n    ' ~ problems | join('\n    '),
            expected='the columns and arguments that docs/flow/feature_states.md lists',
            node=model.unique_id,
            way_out='rename columns in a view on the log, or say with `columns` which is which',
        )) %}
    {% endif %}
    {% set types_of_log = [] %}
    {% for name in payload %}{% do types_of_log.append(types[name | lower]) %}{% endfor %}
    {% do return(dict(
        options, caller_name=caller_name, writes=dbt_history._relation_name(writes), key=key,
        payload=payload, json=json | map('lower') | list, names=names,
        branched=options.branches is not none, on_branches=false, types_of_log=types_of_log,
        stored_types={}, payload_types=types_of_log,
        content_type=dbt_history._content_type(types_of_log),
    )) %}
{% endmacro %}


{# The struct of a content; its fields are p0, p1 and so on, in the order of the payload. #}
{% macro _content_type(types) %}
    {% set fields = [] %}
    {% for type in types %}
        {% do fields.append('p' ~ loop.index0 ~ ': ' ~ dbt_history._ddl_type(type)) %}
    {% endfor %}
    {% do return('struct<' ~ fields | join(', ') ~ '>') %}
{% endmacro %}


{# A content with these values, in the order of the payload. #}
{% macro _as_content(features, values) %}
    {%- set parts = [] -%}
    {%- for value in values -%}
        {%- do parts.append("'p" ~ loop.index0 ~ "', " ~ value) -%}
    {%- endfor -%}
    {%- do return(
        'cast(named_struct(' ~ parts | join(', ') ~ ') as ' ~ features.content_type ~ ')'
    ) -%}
{% endmacro %}


{#
    Settings of the content where states are stored. A state is read and written again, as a
    tombstone or with another end, and keeps its values. `stored_types`: {lower name: type} of the
    table of states.

        log             states           content
        decimal(8,0)    decimal(10,2)    decimal(10,2)    it holds all values of the log, too
        bigint          int              bigint           which the pipeline refuses
        struct<a,c>     struct<a,b>      struct<a,b,c>
        string          -                string           NULL in the stored states
#}
{% macro _content_with_stored(features, columns_of_states) %}
    {% set stored_types, types = dbt_history._types_by_name(columns_of_states), [] %}
    {% for name in features.payload %}
        {% set type = features.types_of_log[loop.index0] %}
        {% set stored = stored_types.get(name | lower, type) %}
        {% do types.append(
            stored if dbt_history._type_fits(type, stored)
                else dbt_history._with_more_fields(stored, type)
                    if dbt_history._is_same_kind(type, stored)
                else type
        ) %}
    {% endfor %}
    {% do return({
        'stored_types': stored_types, 'payload_types': types,
        'content_type': dbt_history._content_type(types),
    }) %}
{% endmacro %}


{# The columns of a write: {meaning: {'required', 'type', 'about'}}. #}
{% macro _write_columns() %}
    {% do return({
        'txn': {'required': true, 'type': 'bigint', 'about': 'number of the transaction'},
        'position': {
            'required': true, 'type': 'bigint', 'about': 'place of the write in its transaction',
        },
        'action': {
            'required': true, 'type': 'string',
            'about': 'CREATE, UPDATE, PUT, DELETE, PURGE or WRITE',
        },
        'app_id': {'required': true, 'type': 'string', 'about': 'the application'},
        'at': {'required': true, 'type': 'timestamp', 'about': 'time of the transaction'},
        'author': {'required': false, 'type': 'string'},
        'message': {'required': false, 'type': 'string'},
        'commit_json': {'required': false, 'type': 'string'},
        'written_at': {'required': false, 'type': 'timestamp'},
        'expected_uuid': {'required': false, 'type': 'string'},
        'base_uuid': {'required': false, 'type': 'string'},
        'on_not_exists': {'required': false, 'type': 'string'},
        'on_exists': {'required': false, 'type': 'string'},
        'on_version_conflict': {'required': false, 'type': 'string'},
        'on_merge_conflict': {'required': false, 'type': 'string'},
        'rolled_back': {'required': false, 'type': 'boolean'},
        'mode': {'required': false, 'type': 'string'},
        'noop_updates': {'required': false, 'type': 'string'},
        'auto_purge': {'required': false, 'type': 'boolean'},
        'history': {'required': false, 'type': 'string'},
        'keep_states': {'required': false, 'type': 'bigint'},
        'resync': {'required': false, 'type': 'boolean'},
    }) %}
{% endmacro %}


{# The type of a state inside the fold. #}
{% macro _state_type(features) %}
    {%- set fields = [] -%}
    {%- for name, type in dbt_history._state_fields(features).items() -%}
        {%- do fields.append(name ~ ': ' ~ type) -%}
    {%- endfor -%}
    {%- do return('struct<' ~ fields | join(', ') ~ ', content: ' ~ features.content_type ~ '>') -%}
{% endmacro %}


{# `seq` is the write that made the state or changed it last. #}
{% macro _state_fields(features) %}
    {%- set branch = {'branch': 'string', 'fork': 'bigint'} if features.on_branches else {} -%}
    {%- do return(dict(branch, **{
        'i': 'bigint', 'seq': 'bigint', 'txn': 'bigint', 'action': 'string', 'version': 'bigint',
        'author': 'string',
        'app_id': 'string', 'puuid': 'string', 'uuid': 'string', 'txn_uuid': 'string',
        'createdAt': 'bigint',
        'updatedAt': 'bigint', 'rtcts': 'bigint', 'rtuts': 'bigint', 'author_txn': 'bigint',
        'created_txn': 'bigint',
        'purged_txn': 'bigint', 'resync': 'boolean',
    })) -%}
{% endmacro %}


{#
    Whether a purge must look for the tombstone that is stored: the write without history that
    deleted the feature left none.
#}
{% macro _reads_tombstones(features, pending) %}
    {%- do return(pending.has_purge and dbt_history._may_lack_history(features)) -%}
{% endmacro %}


{# Whether a write may be one without history. #}
{% macro _may_lack_history(features) %}
    {%- do return(
        dbt_history._may_write_off(features) or features.get('spaces', []) | length > 0
    ) -%}
{% endmacro %}


{# Whether the log or an argument may say so; operations on spaces say so elsewhere. #}
{% macro _may_write_off(features) %}
    {%- do return(features.history == 'off' or 'history' in features.names) -%}
{% endmacro %}
