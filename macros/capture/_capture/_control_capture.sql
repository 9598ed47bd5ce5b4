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
    {% set failed = dbt_history._recorded_statement(
        relation, dbt_history._empty_commit_sql(relation, 'dbt_history.suspended', property),
        record,
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


{#
    The call for a table that is suspended, or is not, already: no commit, so that the point of the
    first call holds. What a killed call has not written is completed; a mark gets the time of that
    call's commit, or the present if it is not known.

        calls    suspend            resume, killed           resume
        commits  suspended          resumed
        marks    suspension         -                        resumption, at the time of the commit
#}
{% macro _repeat_control(relation, is_suspended, dry_run, caller_name) %}
    {% do log(
        'dbt_history: ' ~ caller_name ~ ' ' ~ relation ~ ': it is '
            ~ ('suspended already' if is_suspended else 'not suspended') ~ '; nothing to do',
        info=true,
    ) %}
    {% if dry_run %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._finish_writes(relation, {'has_written': true}) %}
    {% set marks = dbt_history._control_marks(relation) %}
    {% set newest = marks[-1] if marks else ['', 0] %}
    {% if (newest[0] == 'suspension') == is_suspended %}
        {% do return(none) %}
    {% endif %}
    {% set state = namespace(micros=dbt_history._clock().micros) %}
    {% set controls = [] %}
    {% for entry in dbt_history._history_entries(relation)
        if (entry.record or {}).get('control') and not controls %}
        {% do controls.append(entry) %}
    {% endfor %}
    {% for entry in controls if entry.record.control.suspended == is_suspended %}
        {% set state.micros = dbt_history._micros_of(entry.timestamp) %}
    {% endfor %}
    {# The commit and the mark before it may be of two clocks. #}
    {% do dbt_history._add_mark(
        {'relation': relation}, 'suspension' if is_suspended else 'resumption',
        instant=dbt_history._axis_text(
            [state.micros, (newest[1] | int) + 1] | max, {'type': 'timestamp'},
        ),
    ) %}
    {% do log(
        'dbt_history: the mark of the earlier call was missing in ' ~ relation.schema
            ~ '.history_marks; it is added',
        info=true,
    ) %}
{% endmacro %}


{#
    The suspensions and resumptions in the marks, oldest first: (kind, microseconds, the table's
    version then).
#}
{% macro _control_marks(relation) %}
    {% set marks = dbt_history._marks(relation) %}
    {% do return(run_query(
        'select kind, unix_micros(try_cast(instant as timestamp)) as micros, table_version from '
            ~ dbt_history._quoted_relation(marks)
        ~ " where kind in ('suspension', 'resumption') and table_name = "
            ~ dbt_history._string_literal(relation.identifier | lower)
        ~ ' order by micros'
    ).rows if marks is not none else []) %}
{% endmacro %}


{% macro _log_suspended(relation) %}
    {% do log('dbt_history: capture into ' ~ relation ~ ' is suspended', info=true) %}
{% endmacro %}
