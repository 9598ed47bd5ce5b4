{#
    Changes that a difference found together (a resumption, a feed that was off, a table that was
    created again) have one time, and one frame that applies to all tables:

        main a         c1   |suspended  c2     c3        resumed|
        its mirror     c1                                        r     one row for c2 and c3, with
                                                                       the time of the resumption
        links          c1               r .......................      visible from c2 on, the first
                                                                       change it represents
        main b                                    d                    refers to a row of c2: waits,
                                                                       then links to r

    For rows that refer to it, such a row is visible from the first change it represents, in the
    same way as a row of the initial load is visible from the beginning. The frames [from, to] are
    stored with the watermark, in microseconds; the newest ones are sufficient, because everything
    that waited for older ones has been taken. `time`: the column of the log with the time of a
    change.
#}
{% macro _set_frames(capture, time) %}
    {% set diff = capture.diff %}
    {% if capture.watermark is not none and capture.watermark.version is not none %}
        {% set frames = (capture.taken.watermark or {}).get('frames', []) %}
        {% if diff is not none and diff.state %}
            {% set begin = dbt_history._first_of_difference(capture, time) %}
            {% set frames = frames
                + ([[begin, diff.micros]] if begin is not none and begin < diff.micros else []) %}
        {% endif %}
        {% do capture.watermark.update({'frames': frames[-20:]} if frames else {}) %}
    {% endif %}
{% endmacro %}


{#
    The time of the first change that the difference may contain; for a table that was created
    again, or a mirror without that information, the time after its last row.
#}
{% macro _first_of_difference(capture, time) %}
    {% for entry in capture.entries + capture.head.entries
        if capture.is_same and entry.version == capture.taken.watermark.version + 1 %}
        {% do return(dbt_history._micros_of(entry.timestamp)) %}
    {% endfor %}
    {% set last = dbt_history._last_micros(this, time) %}
    {% do return(last + 1 if last is not none else none) %}
{% endmacro %}


{#
    The time of the rows of a resumption: when it was resumed, which is after the changes they
    represent and before later ones. Tables that are resumed together thus have the same frame, even
    if they were last changed at different times.
#}
{% macro _resumption_micros(capture, version) %}
    {% set micros = dbt_history._version_micros(capture, version) %}
    {% set state = namespace(micros=[micros, capture.taken.resumed_at or 0] | max) %}
    {% for entry in capture.entries if entry.version == version + 1 %}
        {% set state.micros = [
            micros, [state.micros, dbt_history._micros_of(entry.timestamp) - 1] | min,
        ] | max %}
    {% endfor %}
    {% do return(state.micros) %}
{% endmacro %}


{#
    Whether rows of this time would miss changes that a referenced mirror has not taken yet. A
    resumption is one step: it is taken completely or not at all.
#}
{% macro _must_wait(capture, micros) %}
    {% set waits = capture.head.get('waits') %}
    {% do return(waits is not none and (waits.before is none or waits.before <= micros)) %}
{% endmacro %}


{# SQL: the time from which a row of a referenced history is visible. #}
{% macro _seen_from(link) %}
    {%- set cases = [] -%}
    {%- if link.populated is not none -%}
        {%- do cases.append(
            'when `mod_time` <= timestamp_micros(' ~ link.populated ~ 'L) then timestamp_micros(0L)'
        ) -%}
    {%- endif -%}
    {%- for frame in link.frames -%}
        {%- do cases.append(
            'when `mod_time` between timestamp_micros(' ~ frame[0] ~ 'L) and timestamp_micros('
                ~ frame[1] ~ 'L) then timestamp_micros(' ~ frame[0] ~ 'L)'
        ) -%}
    {%- endfor -%}
    {%- do return(
        'case ' ~ cases | join(' ') ~ ' else `mod_time` end' if cases else '`mod_time`'
    ) -%}
{% endmacro %}
