{#
    On an axis of numbers, the difference from a source that was made again or set back, or that is
    no Delta table any more, has the number that the source has now. A number that is not above all
    of the table would be taken for a late change: the newer versions would stay current.

        version of the source    3         7         0, made again without x
        table                              [ x ----------------   cannot end at 0

    A position that is computed from numbers and `_commit_version` alone is checked, also if it is
    cast to bigint.
#}
{% macro _refuse_earlier_number(source, at, convention) %}
    {% set form = '^[-+*/() 0-9]*`?_commit_version`?[-+*/() 0-9]*$' %}
    {% set bare = modules.re.sub(
        '\\b(cast|bigint) *(?=[(])| as +(bigint|long)(?= *[)])|(?<=[0-9])l\\b', '', at | lower,
    ) %}
    {% set is_checked = execute and convention.type == 'bigint' and modules.re.match(form, bare) %}
    {% for note in dbt_history._notes('capture', source)
        if is_checked and note.again_at is defined %}
        {% set table = load_relation(this) %}
        {% set row = run_query(
            'select cast(' ~ at ~ ' as bigint) as point, newest.version from (select '
                ~ note.again_at ~ 'L as `_commit_version`) as difference cross join '
            ~ dbt_history.current_version(table, convention) ~ ' as newest'
        ).rows[0] %}
        {% if row[1] is not none and row[0] <= row[1] %}
            {% do exceptions.raise_compiler_error(dbt_history._message(
                'batch_rows',
                'the source was made again, set back, or is no Delta table any more, so that its'
                    ~ ' changes would come before versions that the table has; nothing was written',
                got=note.source ~ ' at ' ~ row[0],
                expected='a position after ' ~ row[1] ~ ', the newest of ' ~ table,
                node=model.unique_id,
                way_out="at='" ~ at | replace('`', '') ~ ' + ' ~ (row[1] - row[0] + 1) | int
                    ~ "' from now on, so that the numbers continue",
            )) %}
        {% endif %}
    {% endfor %}
{% endmacro %}
