{#
    Suspending and resuming are commits of the history table itself, so they are ordered with its
    batches, and a restore undoes them. The table property shows the state to anyone who inspects
    the table.
#}
{% macro _control_capture(relation, control, property, dry_run, caller_name) %}
    {% set line = caller_name ~ ' ' ~ relation ~ ': ' ~ tojson(control) %}
    {% if dry_run %}
        {% do log('dbt_history: would ' ~ line, info=true) %}
        {% do return(none) %}
    {% endif %}
    {% set record = {'dbt_history': '1', 'control': control, 'invocation_id': invocation_id} %}
    {% set failed = dbt_history._guarded_statement(
        dbt_history._empty_commit_sql(relation, 'dbt_history.suspended', property),
        dbt_history._record_setting(relation, record),
        dbt_history._session_settings(['spark.databricks.delta.commitInfo.userMetadata']),
    ) %}
    {% if failed is not none %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the history table could not be altered (' ~ failed ~ ')', got=relation,
            way_out='try again when no other run writes to it',
        )) %}
    {% endif %}
    {% do dbt_history._finish_writes(relation, {'has_written': true}) %}
    {# The commit's record is lost when the table's log expires; the mark is kept. #}
    {% set now = run_query('select unix_micros(current_timestamp())').rows[0][0] %}
    {% do dbt_history._add_mark(
        {'relation': relation}, 'suspension' if control.suspended else 'resumption',
        instant=dbt_history._axis_text(now, {'type': 'timestamp'}),
    ) %}
    {% do log('dbt_history: ' ~ line, info=true) %}
{% endmacro %}


{% macro _log_suspended(relation) %}
    {% do log('dbt_history: capture into ' ~ relation ~ ' is suspended', info=true) %}
{% endmacro %}
