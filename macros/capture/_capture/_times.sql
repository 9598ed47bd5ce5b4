{#
    The times that a run gives to the versions of a table: the commit's or the run's, but always
    later than those of earlier runs. A later change with an earlier time would be taken for a late
    one: stored as a closed version, with the version before it still current.

        clock of the run        12:00        11:58 (another machine)
        time of its changes     12:00        12:00:00.000001

    The latest time is committed with the rows (`about.times`). `floor`: what to exceed where it is
    not recorded, in microseconds; none if nothing is known.
#}
{% macro _let_times_increase(capture, floor=none) %}
    {% set taken, head = capture.taken, capture.head %}
    {% set floor = (taken.about.get('times') or {}).get('latest', floor) %}
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


{# SQL: the time of a change, over `time` and `version`. #}
{% macro _time_of_change(capture) %}
    {%- do return(
        '`time`' if capture.get('floor') is none
            else 'greatest(`time`, timestamp_micros(' ~ capture.floor
                ~ 'L + greatest(1L, `version` - ' ~ capture.first ~ 'L)))'
    ) -%}
{% endmacro %}
