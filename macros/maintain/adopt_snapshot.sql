{#
    Run-operation: prints a `history` model for each snapshot named, which goes on with the table
    that `dbt snapshot` has filled: the same columns, the same rows, nothing is rewritten.
    `dbt-history adopt` runs it and writes the files.

        snapshot    [ a --------)[ b --------------------------
        history                  [ b -----------)[ c ---------- open
                                 ^ the model's first run compares with the open versions

    Refused, with the rows, if the table contradicts itself; and for snapshots that a `history`
    model cannot go on with (docs/guides/adopt.md).
#}
{% macro adopt_snapshot(snapshot, folder='models/history') %}
    {% set adopted, problems = [], [] %}
    {% for name in dbt_history._key_columns(snapshot) %}
        {% set node = dbt_history._node_named(name, 'adopt_snapshot') %}
        {% if node is none or node.resource_type != 'snapshot' %}
            {% do problems.append(name ~ ': no snapshot has this name') %}
        {% else %}
            {% do adopted.append(dbt_history._adopted_model(node, folder, problems)) %}
        {% endif %}
    {% endfor %}
    {% if problems or not adopted %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'adopt_snapshot', 'not every snapshot can be adopted; nothing was written',
            got='\n    ' ~ (problems or ['no snapshot']) | join('\n    '),
            expected='snapshots of Delta tables with the strategy timestamp, check or'
                ~ ' dbt_history.versions, one open version per record and no overlaps',
        )) %}
    {% endif %}
    {% for model in adopted %}
        {% do print(
            '-- file: ' ~ folder ~ '/' ~ model.name ~ '.sql\n' ~ model.sql ~ '\n-- end of file'
        ) %}
    {% endfor %}
{% endmacro %}
