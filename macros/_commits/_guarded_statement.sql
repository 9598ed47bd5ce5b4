{#
    Runs `statement` with session settings in force for just this statement, as one SQL script: they
    are put back to `before` whether it succeeds or fails (dbt has no `finally`, Spark's script has
    a handler).

    Returns none, or the class of the failure: 'conflict', 'refused' (a raise_error of ours),
    'exists', 'constraint', 'gone' (a file is not there any more), 'too long' (a text for its
    column), 'no delta' (Spark does not know the format), 'error'. A script's handler cannot raise
    again what it caught, so the caller decides what to say.
#}
{% macro _guarded_statement(statement, settings, before) %}
    {% set reset %}
        {%- for name in settings %}
            {%- if before.get(name) is none %}
        execute immediate {{ dbt_history._string_literal(
            'reset ' ~ dbt_history._key_of_setting(name)
        ) }};
            {%- else %}
        execute immediate {{ dbt_history._string_literal(dbt_history._set_sql(
            name, before[name],
        )) }};
            {%- endif %}
        {%- endfor %}
    {%- endset %}
    {% set classes = [
        ("sqlstate '2D521'", 'conflict'), ('user_raised_exception', 'refused'),
        ("sqlstate '42601'", 'exists'), ("sqlstate '23001'", 'constraint'),
        ("sqlstate '23502'", 'constraint'),
        ("sqlstate 'KD001'", 'gone'), ("sqlstate '22001'", 'too long'),
        ("sqlstate '54006'", 'too long'),
        ("sqlstate '42K02'", 'no delta'), ("sqlstate '56038'", 'no delta'),
        ('sqlexception', 'error'),
    ] %}
    {% set script %}
begin
    {%- for condition, name in classes %}
    declare exit handler for {{ condition }}
    begin
        {{- reset }}
        select '{{ name }}' as failed;
    end;
    {%- endfor %}
    {%- for name, value in settings.items() %}
    execute immediate {{ dbt_history._string_literal(dbt_history._set_sql(name, value)) }};
    {%- endfor %}
    {{ statement }};
    {{- reset }}
end
    {%- endset %}
    {% set result = run_query(script) %}
    {% do return(
        result.rows[0]['failed'] if result is not none and 'failed' in result.column_names else none
    ) %}
{% endmacro %}


{# A key with a hyphen has to be quoted. #}
{% macro _key_of_setting(name) %}
    {% do return('`' ~ name ~ '`' if '-' in name else name) %}
{% endmacro %}


{# SET with a value of any text: one that is not quoted ends at a semicolon or a line break. #}
{% macro _set_sql(name, value) %}
    {% do return(
        'set `' ~ name ~ '` = '
            ~ ('`' ~ (value | string).replace('`', '``') ~ '`' if value | string else '')
    ) %}
{% endmacro %}


{#
    A commit's record as the text of a setting. Spark fills in ${...} there, also in quotes; JSON
    can write the dollar by its code.
#}
{% macro _record_text(record) %}
    {% do return(tojson(record).replace('$', '\\u0024')) %}
{% endmacro %}


{#
    What the session has set now for these keys: {key: value or none}. Spark ends a script without
    its handler where an error has no condition (a failed stage of a sub-query); what the script had
    set for its commit is reset here, before anything else is written.
#}
{% macro _session_settings(keys) %}
    {% set found = dict() %}
    {% for row in run_query('set').rows if row[0] in keys %}
        {% do found.update({row[0]: row[1]}) %}
    {% endfor %}
    {% for name in dbt_history._left_settings(found) %}
        {% do run_query('reset ' ~ dbt_history._key_of_setting(name)) %}
        {% do found.pop(name) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}


{# Of these settings those that a statement of this package has left. #}
{% macro _left_settings(found) %}
    {% set app_id = 'spark.databricks.delta.write.txnAppId' %}
    {% set version = 'spark.databricks.delta.write.txnVersion' %}
    {% set left = [] %}
    {% for name, value in found.items() %}
        {% set is_record = name.endswith('.userMetadata') and value.startswith('{')
            and '"dbt_history"' in value %}
        {% set is_number = name in [app_id, version]
            and (found.get(app_id) or '').startswith('dbt_history:') %}
        {% do left.append(name) if is_record or is_number %}
    {% endfor %}
    {% do return(left) %}
{% endmacro %}
