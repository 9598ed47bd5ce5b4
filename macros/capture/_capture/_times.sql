{#
    The times that a run gives to the versions of a table: the commit's or the run's, but always
    later than those of earlier runs. A later change with an earlier time would be taken for a late
    one: stored as a closed version, with the version before it still current.

        clock of the run        12:00        11:58 (another machine)
        time of its changes     12:00        12:00:00.000001

    The latest time is committed with the rows (`about.times`). `floor`: what to exceed where it is
    not recorded, in microseconds; none if nothing is known. An operation (`rewind`, a migration)
    counts as a run: its versions begin at the time of another clock than that of the commits, or at
    a point that somebody chose, and hide every change before (`begun`).

        commit's clock     11:58                       captured at 12:00:00.000001
        table              [ a --------- rewound, 12:00: )[ b )[ c ----      c is the current one
#}
{% macro _let_times_increase(capture, floor=none) %}
    {% set taken, head = capture.taken, capture.head %}
    {% set floor = (taken.about.get('times') or {}).get('latest', floor) %}
    {% set floor = [floor, taken.get('begun')] | reject('none') | max | default(none) %}
    {% set first = ((taken.watermark or {}).get('version') or 0) if head.is_delta
        else taken.number - 1 %}
    {% do capture.update({'floor': floor, 'first': first}) %}
    {% if capture.watermark is none %}
        {% do return(none) %}
    {% endif %}
    {% set time = dbt_history._version_micros(capture, head.version) if head.is_delta
        else capture.diff.micros %}
    {% set steps = [1, (head.version or 0) - first] | max %}
    {% do capture.update({'about': dict(capture.get('about') or {}, times={
        'latest': time if floor is none else [time, floor + steps] | max,
    })}) %}
{% endmacro %}


{#
    The same for a log. Only a table that was made again or set back has commits whose times are
    before those of rows that the log has, and only a view has the time of the run's clock; then all
    rows of the run come from a difference:

        time of the log's rows        12:00    12:01
        table set back to 12:00                        12:01:00.000001
        rows of a reference that
        was set back, too                   12:00:30.000001     not yet written: a mirror waits
#}
{% macro _let_difference_be_last(capture) %}
    {% set diff, layout = capture.diff, capture.layout %}
    {% set time = layout.get('time') if layout is not none
        else '_commit_timestamp' if model.config.get('materialized') == 'history_append'
        else none %}
    {% if diff is none or not diff.state or capture.get('is_same') or not time %}
        {% do return(none) %}
    {% endif %}
    {% set there = dbt_history._table_columns(this) | selectattr('name', 'equalto', time)
        | selectattr('type', 'equalto', 'timestamp') | list %}
    {% set last = dbt_history._last_micros(this, time) if there else none %}
    {% if last is not none %}
        {% do diff.update({'micros': [diff.micros, last + 1] | max}) %}
    {% endif %}
{% endmacro %}


{# The greatest time in a column of a log, in microseconds since 1970; none without rows. #}
{% macro _last_micros(relation, time) %}
    {% set last = run_query(
        'select unix_micros(max(' ~ dbt_history._quote(time) ~ ')) from '
            ~ dbt_history._quoted_relation(relation)
    ).rows[0][0] %}
    {% do return(last | int if last is not none else none) %}
{% endmacro %}


{# SQL: the time of a change, over `time` and `version`. #}
{% macro _time_of_change(capture) %}
    {%- do return(
        '`time`' if capture.get('floor') is none
            else 'greatest(`time`, timestamp_micros(' ~ capture.floor
                ~ 'L + greatest(1L, `version` - ' ~ capture.first ~ 'L)))'
    ) -%}
{% endmacro %}
