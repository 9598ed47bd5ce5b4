{# The time of a version in microseconds since 1970. #}
{% macro _version_micros(capture, version) %}
    {% set found = namespace(moment=none) %}
    {% for entry in capture.head.entries + capture.entries if entry.version == version %}
        {% set found.moment = entry.timestamp %}
    {% endfor %}
    {% do return(dbt_history._micros_of(found.moment)) %}
{% endmacro %}


{# The time of the query, in microseconds since 1970 and as the driver returns a timestamp. #}
{% macro _clock() %}
    {% set row = run_query(
        'select unix_micros(moment) as micros, moment from (select current_timestamp() as moment)'
            ~ ' as clock'
    ).rows[0] %}
    {% do return({'micros': row[0] | int, 'moment': row[1]}) %}
{% endmacro %}


{% macro _micros_of(moment) %}
    {% do return(dbt_history._micros_of_all([{'version': 0, 'timestamp': moment}])[0]) %}
{% endmacro %}


{#
    The times of commits in microseconds since 1970: {version: micros}. DESCRIBE HISTORY is a
    command, so SQL cannot convert its timestamps. A session returns them in the time zone of its
    Python process, where `fold` marks the second occurrence of an hour; `timestamp()` respects
    `fold`, a comparison does not. A thrift server returns them in the time zone of the Spark
    session. Reading the current time both ways shows which of the two applies.
#}
{% macro _micros_of_all(entries) %}
    {% set clock = dbt_history._clock() %}
    {% set found = {} %}
    {% set texts = [] %}
    {% for entry in entries %}
        {% set moment = entry['timestamp'] %}
        {% if moment is not string
            and (clock.moment.timestamp() * 1000000 - clock.micros) | abs < 1000000 %}
            {% do found.update({
                entry['version'] | int: (moment.timestamp() | round(0, 'floor') | int) * 1000000
                    + moment.microsecond
            }) %}
        {% else %}
            {% do texts.append(
                '(' ~ entry['version'] ~ ', ' ~ dbt_history._string_literal(moment) ~ ')'
            ) %}
        {% endif %}
    {% endfor %}
    {% if texts %}
        {% set sql = 'select version, unix_micros(cast(moment as timestamp)) from values '
            ~ texts | join(', ') ~ ' as commits(version, moment)' %}
        {% for row in run_query(sql).rows %}
            {% do found.update({row[0] | int: row[1] | int}) %}
        {% endfor %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}
