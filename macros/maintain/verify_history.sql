{#
    Checks a history table against everything that can be recomputed: the rules of periods; from the
    table's log the number of rows, and commits of others that changed rows, dropped columns,
    emptied or replaced the table; and, with `source`, the current versions against the table they
    mirror (only its columns are compared). Differences are an error. A mirror or an event table is
    compared with its main table without being told, if it has read all commits of it. Runs may
    commit meanwhile: a table is compared with the log, and the main table, of one moment. It
    writes nothing, so `dry_run` changes nothing.

    dbt run-operation verify_history --args '{table: customers, source: stg_customers}'
#}
{% macro verify_history(
    table='all', source=none, dry_run=false, convention=none, key=none
) %}
    {% set differences = [] %}
    {% for table in dbt_history._tables_of_all_kinds(
        table, convention, key, 'verify_history',
    ) %}
        {% set entries = dbt_history._history_entries(table.relation) %}
        {% set rules = dbt_history._broken_rules_of_log(table) if table.log
            else dbt_history._broken_rules(table) %}
        {% set found = rules + dbt_history._lost_rows(table, entries)
            + dbt_history._foreign_commits(table, entries) %}
        {% set other = dbt_history._compared_with(table, entries, source) %}
        {% if other is not none %}
            {% do found.extend(dbt_history._differences(table, entries, other)) %}
        {% endif %}
        {% for text in found %}
            {% do differences.append(table.name ~ ': ' ~ text) %}
        {% endfor %}
        {% do log(
            'dbt_history: ' ~ table.name ~ ': '
                ~ (found | length ~ ' differences' if found else 'no differences'),
            info=true,
        ) %}
    {% endfor %}
    {% if differences %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'verify_history', 'the history is not what its rules, its log or its source say',
            got='\n    ' ~ differences | join('\n    '),
            way_out='the generic tests of dbt_history show the rows; describe history shows who'
                ~ ' wrote them',
        )) %}
    {% endif %}
{% endmacro %}
