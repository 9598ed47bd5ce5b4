{#
    The columns that a part of the feed lacks, because they were dropped in between, although an
    earlier part or the table has them: {'name', 'is_said': SQL, whether a change says the column}.
    The rows of such a part do not say that the column is NULL:

        commit     5: insert at 3, city Bonn    6: city dropped    7: v of the row at 3
        city       Bonn                                            not said

    `fixed`: columns of which this is not asked.
#}
{% macro _partly_said_columns(capture, fixed=[]) %}
    {% set diff = capture.diff %}
    {% set parts = ([] if diff is none else [
        dict(diff, **{'from': diff.number, 'to': diff.number})
    ]) + capture.segments %}
    {% if parts | length == 1 or not capture.segments %}
        {% do return([]) %}
    {% endif %}
    {% set stored = dbt_history._table_columns(this) | map(attribute='name') | map('lower') | list
        if capture.taken.has_rows else [] %}
    {% set found = [] %}
    {% for column in capture.columns if column.name | lower not in fixed | map('lower') | list %}
        {% set name = column.name | lower %}
        {% set state, lacking = namespace(is_known=name in stored), [] %}
        {% for part in parts %}
            {% if name in part.columns | map(attribute='name') | map('lower') | list %}
                {% set state.is_known = true %}
            {% elif state.is_known %}
                {% do lacking.append(
                    '`_commit_version` between ' ~ part['from'] ~ ' and ' ~ part.to
                ) %}
            {% endif %}
        {% endfor %}
        {% do found.append({
            'name': column.name, 'is_said': 'not (' ~ lacking | join(' or ') ~ ')',
        }) if lacking %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
