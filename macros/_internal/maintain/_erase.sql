{# The columns to erase: those named, else all but key and period. `only` must name a whole key. #}
{% macro _erased_columns(table, only, columns) %}
    {% set conv = table.conv %}
    {% set kept = (table.key + dbt_history._identity_columns(conv) + [conv.end, conv.active]) | reject('none') | map('lower') | list %}
    {% set problems = [] %}
    {% for name in table.key if name not in (only or {}) %}
        {% do problems.append('only does not name the key column ' ~ name) %}
    {% endfor %}
    {% for name in only or {} if name not in table.key %}
        {% do problems.append(name ~ ' is no key column') %}
    {% endfor %}
    {% for name in columns or [] if name | lower in kept %}
        {% do problems.append(name ~ ' belongs to the key or the period') %}
    {% endfor %}
    {% set erased = columns or dbt_history._without(dbt_history._table_columns(table.relation), kept) | map(attribute='name') | list %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'erase_subject', 'this is not one record of ' ~ table.name ~ '; nothing was erased', got='\n    ' ~ problems | join('\n    '),
            expected='only: {key column: value, ...} for all of ' ~ table.key | join(', '),
        )) %}
    {% endif %}
    {% do return(erased) %}
{% endmacro %}


{# An update of a table that may be a log: Delta keeps those from being changed, so the lock is opened for this one statement. #}
{% macro _update_log(statement, name, table) %}
    {% set lock = namespace(is_on=false) %}
    {% for row in run_query('show tblproperties ' ~ name).rows if row[0] == 'delta.appendOnly' and row[1] | lower == 'true' %}
        {% set lock.is_on = true %}
    {% endfor %}
    {% set close = 'alter table ' ~ name ~ " set tblproperties ('delta.appendOnly' = 'true')" %}
    {% set open = 'alter table ' ~ name ~ " set tblproperties ('delta.appendOnly' = 'false')" %}
    {% if lock.is_on %}
        {% do run_query(open) %}
    {% endif %}
    {% set record = dbt_history._record_setting(table.relation, {'history_operation': 'erase_subject'}) %}
    {% set failed = dbt_history._guarded_statement(statement, record, dbt_history._session_settings(record.keys() | list)) %}
    {% if lock.is_on %}
        {% do run_query(close) %}
    {% endif %}
    {% if failed is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'erase_subject', name ~ ' could not be changed (' ~ failed ~ ')', expected='columns that may be NULL',
            way_out='name the columns that may be erased: columns: [...]',
        )) %}
    {% endif %}
{% endmacro %}
