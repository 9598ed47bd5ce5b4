{# Refuses a capture that cannot work, before anything is read or written. #}
{% macro _refuse_capture(capture, method) %}
    {% if not execute %}
        {% do return(none) %}
    {% endif %}
    {% set problems = [] %}
    {% if method not in ['auto', 'feed', 'diff'] %}
        {% do problems.append('method is ' ~ method ~ ': auto, feed or diff') %}
    {% endif %}
    {% if capture.relation is string %}
        {% do problems.append('the table is a text: name it by ref or source') %}
    {% elif dbt_history._is_ephemeral(capture.relation) %}
        {% do problems.append(
            capture.relation ~ ' is an ephemeral model, which has no table: make it a view'
        ) %}
    {% endif %}
    {% if not capture.key %}
        {% do problems.append(
            'key is empty: name the columns that tell rows apart, or let the table say them, by'
                ~ ' unique_key, meta.history.key, a primary key constraint, or the tests unique and'
                ~ ' not_null of one column'
        ) %}
    {% endif %}
    {% set materialized = model.config.get('materialized') if model.resource_type == 'model'
        else none %}
    {% if materialized
        and materialized not in ['history', 'history_append', 'history_batch', 'incremental'] %}
        {% do problems.append(
            'the model is a ' ~ materialized ~ ', which does not keep how far a source was read'
        ) %}
    {% endif %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name, 'the changes of ' ~ capture.relation ~ ' cannot be read',
            got='\n    ' ~ problems | join('\n    '),
            expected='a relation, its key, and a model with materialized history, history_append,'
                ~ ' history_batch or incremental',
            node=model.unique_id,
        )) %}
    {% endif %}
{% endmacro %}


{#
    Refuses a source that was dropped. If nothing is run (`dbt compile`, a unit test) it need not
    exist yet; the coarse log continues with its other sources.
#}
{% macro _refuse_missing_source(capture) %}
    {% set is_one_of_many = capture.caller_name == 'core_temp_history' %}
    {% if execute and flags.WHICH in ['run', 'build'] and not is_one_of_many
        and model.resource_type == 'model' %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name,
            'the table whose changes are read does not exist; nothing was written',
            got=capture.relation,
            expected='a table or view', node=model.unique_id,
            way_out='create the table again: the next run takes the difference from what the'
                ~ ' history'
                ~ ' has',
        )) %}
    {% endif %}
{% endmacro %}


{#
    Refuses columns whose values cannot be compared or cannot identify a row, a key that the source
    does not have, and names that the changes need for themselves; all at once.
#}
{% macro _refuse_captured_columns(capture) %}
    {% set problems = [] %}
    {% for column in capture.columns %}
        {% if dbt_history._has_variant(column.type) %}
            {% do problems.append(
                'column ' ~ column.name ~ ' is ' ~ column.type
                    ~ ', which cannot be compared: take the changes of a view that casts it to'
                    ~ ' string (to_json)'
            ) %}
        {% elif column.name | lower in capture.key | map('lower') and 'map<' in column.type %}
            {% do problems.append(
                'key column ' ~ column.name ~ ' is ' ~ column.type
                    ~ ', which cannot identify rows'
            ) %}
        {% endif %}
    {% endfor %}
    {% set names = capture.head_columns | map(attribute='name') | map('lower') | list %}
    {% for name in capture.key if name | lower not in names %}
        {% set now = dbt_history._renamed_to(capture, name) %}
        {% do problems.append(
            'there is no column ' ~ name ~ (', it was renamed to ' ~ now if now is not none else '')
        ) %}
    {% endfor %}
    {% for name in capture.columns | map(attribute='name') | map('lower')
        if name in ['_change_type', '_commit_version', '_commit_timestamp', '_changed_by'] %}
        {% do problems.append('column ' ~ name ~ ' has a name that the changes need') %}
    {% endfor %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name, 'the columns of ' ~ capture.relation ~ ' do not fit',
            got='\n    ' ~ problems | join('\n    '),
            expected='the columns of the key; none of _change_type, _commit_version,'
                ~ ' _commit_timestamp, _changed_by',
            node=model.unique_id,
        )) %}
    {% endif %}
{% endmacro %}


{#
    A log knows its items by the columns of its key: under another key, the rows that it has would
    belong to no item. A key that was renamed in the source goes on once the log has its column
    under the new name instead of the former one. The message names the renames if each missing
    column is at the place of one that the key no longer has.
#}
{% macro _refuse_renamed_key(capture) %}
    {% set about = capture.taken.about %}
    {% set known = (about.get('hx') or about.get('events') or {}).get('key') or [] %}
    {% set key = capture.key | map('lower') | list %}
    {% if capture.layout is none or not capture.taken.has_rows or not known
        or known | map('lower') | sort | list == key | sort | list %}
        {% do return(none) %}
    {% endif %}
    {% set there = dbt_history._table_columns(this) | map(attribute='name') | map('lower') | list %}
    {% set missing, renames = [], [] %}
    {% for name in capture.key %}
        {% set former = known[loop.index0] if known | length == capture.key | length else none %}
        {% do missing.append(name) if name | lower not in there %}
        {% if name | lower not in there and former is not none and former | lower in there
            and former | lower not in key %}
            {% do renames.append(
                'alter table ' ~ dbt_history._quoted_relation(this) ~ ' rename column '
                    ~ dbt_history._quote(former) ~ ' to ' ~ dbt_history._quote(name)
            ) %}
        {% endif %}
    {% endfor %}
    {% set left = known | map('lower') | reject('in', key) | select('in', there) | list %}
    {% if missing or left or known | length != key | length %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name,
            ('the log has no key column of this name' if missing
                else 'the log was written with another key') ~ '; nothing was written',
            got='key ' ~ capture.key | join(', '),
            expected='the key that the log was written with: ' ~ known | join(', '),
            node=model.unique_id,
            way_out='name the key as before, or give the model another alias; if the column was'
                ~ ' renamed in the source, rename it in the log too: alter table '
                ~ dbt_history._quoted_relation(this)
                ~ " set tblproperties ('delta.columnMapping.mode' = 'name'); "
                ~ renames | join('; ')
                if missing and renames | length == missing | length
                else 'name the key as before, or give the model another alias',
        )) %}
    {% endif %}
{% endmacro %}


{#
    Refuses a column that was dropped and added again with another type since the last run, where
    the type of the capture cannot have the values from before.

        source     v string 'abc'     v dropped, v int added     v 7
        captured   v int: NULL                                   7      'abc' would be lost
#}
{% macro _refuse_retyped_columns(capture) %}
    {% set types = dbt_history._types_by_name(capture.columns) %}
    {% set problems = [] %}
    {% for part in capture.segments + ([capture.diff] if capture.diff is not none else []) %}
        {% for column in part.columns
            if not dbt_history._keeps_values(column.type, types[column.name | lower]) %}
            {% do problems.append(
                'column ' ~ column.name ~ ' was ' ~ column.type ~ ' and is '
                    ~ types[column.name | lower]
            ) %}
        {% endfor %}
    {% endfor %}
    {% if problems and not (capture.layout or {}).get('is_source') %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            capture.caller_name,
            'columns of ' ~ capture.relation ~ ' have had values since the last run that their'
                ~ ' present type does not have; nothing was written',
            got='\n    ' ~ problems | unique | join('\n    '),
            expected='columns that keep their type, or get a wider one', node=model.unique_id,
            way_out=dbt_history._resync_by_diff(),
        )) %}
    {% endif %}
{% endmacro %}


{#
    Whether a value of type `source` is still there after a cast to `target`: besides `_type_fits`,
    what Delta can widen a column to, and the text of a value. The fields of structs are not
    compared.
#}
{% macro _keeps_values(source, target) %}
    {% set source = modules.re.sub('(?i) collate \\w+', '', source) %}
    {% set target = modules.re.sub('(?i) collate \\w+', '', target) %}
    {% set digits = {'tinyint': 3, 'smallint': 5, 'int': 10, 'bigint': 19}.get(source | lower) %}
    {% set decimal = modules.re.match('decimal[(]([0-9]+), *([0-9]+)[)]$', target | lower) %}
    {% do return(
        dbt_history._type_fits(source, target) or dbt_history._is_same_kind(source, target)
        or (digits is not none and decimal is not none
            and decimal.group(1) | int - decimal.group(2) | int >= digits)
        or [source | lower, target | lower] == ['date', 'timestamp_ntz']
        or (target | lower == 'string' and '<' not in source and source | lower != 'binary')
    ) %}
{% endmacro %}


{% macro _refuse_feed(capture, problem) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        capture.caller_name,
        'the change data feed of ' ~ capture.relation ~ ' cannot be used: ' ~ problem,
        got='method feed',
        expected='a Delta table whose feed (delta.enableChangeDataFeed) was on since the model'
            ~ ' read it last',
        node=model.unique_id,
        way_out=dbt_history._resync_by_diff(),
    )) %}
{% endmacro %}


{# Refuses changes that have expired, unless a gap can be marked. #}
{% macro _refuse_expired(capture, last) %}
    {% if (capture.layout or {}).get('is_source') %}
        {% do return(none) %}
    {% endif %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        capture.caller_name,
        'changes of ' ~ capture.relation ~ ' have expired before they were taken',
        got='the versions after ' ~ last ~ ' are not all in the log or in the feed any more',
        expected='a run within delta.logRetentionDuration and before a VACUUM removes the feed',
        node=model.unique_id,
        way_out=dbt_history._resync_by_diff(),
    )) %}
{% endmacro %}


{#
    Refuses a difference of one source from a table that has rows of several: the rows of the other
    sources would count as deleted.
#}
{% macro _refuse_mixed_state(caller_name, sources) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'a difference is needed, and the table does not record which of its rows come from which'
            ~ ' source; nothing was written',
        got='the sources ' ~ sources | join(', '),
        expected='a change data feed of each source that was on since the model read it last, or a'
            ~ ' single source',
        node=model.unique_id,
        way_out='if only method diff asks for it, use the feeds; else write a model for each source'
            ~ ' and read their tables together in a view: a new model begins with the rows that its'
            ~ ' source has now',
    )) %}
{% endmacro %}


{% macro _resync_by_diff() %}
    {% do return(
        'compare once with the newest known state: dbt run --select ' ~ model.name
            ~ ' --vars \'dbt_history_capture: diff\''
            ~ ' (what happened in between becomes one change per row); the next run goes on with'
            ~ ' the feed'
    ) %}
{% endmacro %}
