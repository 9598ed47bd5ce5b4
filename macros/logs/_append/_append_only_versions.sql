{#
    Append-only version tables: a log whose rows have a start and no end. The SELECT returns the
    start, or the append stamps it; all rows of one append then start together, after all earlier
    ones.

        run       1      2 (nothing new)      3
        rows      a b                         c
        version   1 1                         2        type bigint
                  09:00 09:00                 11:00    timestamp: the time of the run
        _batch    4 5                         6        the number itself (bigint)
#}

{# Whether the append stamps the start: the SELECT does not return it. #}
{% macro _is_stamped(staged, settings) %}
    {% do return(
        settings.versions is not none and settings.versions.start | lower not in staged.names
    ) %}
{% endmacro %}


{# The column that a new table needs beside those of the SELECT, as a list. #}
{% macro _stamped_columns(staged, settings) %}
    {% do return(
        [{'name': settings.versions.start, 'type': settings.versions.type}]
            if dbt_history._is_stamped(staged, settings) else []
    ) %}
{% endmacro %}


{# Why the rows of the existing table have no version, as a list. #}
{% macro _check_start_column(relation, settings) %}
    {% if not settings.versions %}{% do return([]) %}{% endif %}
    {% set versions = settings.versions %}
    {% for column in dbt_history._table_columns(relation)
        if column.name | lower == versions.start | lower %}
        {% do return(
            [] if dbt_history._type_fits(versions.type, column.type) else [
                'column ' ~ column.name ~ ' of the table is ' ~ column.type ~ ', not '
                    ~ versions.type
            ]
        ) %}
    {% endfor %}
    {% do return([
        'the table has no column ' ~ versions.start
            ~ ', so the version of its rows is not known: add the column and fill it'
    ]) %}
{% endmacro %}


{#
    SQL: the start of the rows of this append. It is computed once, before the INSERT; a run that
    appends in the meantime takes the number of the commit, and this one appends nothing.
#}
{% macro _stamp(target, settings, plan) %}
    {% set versions = settings.versions %}
    {% if plan.kind == 'batch' and versions.type == 'bigint' %}
        {% do return('`_batch`') %}
    {% endif %}
    {% set newest = 'max(' ~ dbt_history._quote(versions.start) ~ ')' %}
    {% set next = {
        'bigint': 'coalesce(' ~ newest ~ ', 0) + 1',
        'timestamp': 'greatest(current_timestamp(), ' ~ newest ~ ' + interval 1 microsecond)',
        'date': 'greatest(' ~ dbt_history._utc_day('current_timestamp()') ~ ', ' ~ newest ~ ')',
    }[versions.type] %}
    {% set number = run_query(
        'select ' ~ dbt_history._axis_number(next, versions) ~ ' from '
            ~ dbt_history._quoted_relation(target)
    ).rows[0][0] | int %}
    {% do return(
        dbt_history._literal(dbt_history._axis_value(number, versions), versions) | trim
    ) %}
{% endmacro %}


{#
    Refuses new rows (`added`, a sub-query) without a start and, with `version_order: increasing`,
    with one that is not after the current version.
#}
{% macro _refuse_starts(target, staged, settings, plan, added, caller_name) %}
    {% set start = dbt_history._quote(settings.versions.start) %}
    {% set version = plan.get('stamp') or start %}
    {% set row = run_query(
        'select count_if(' ~ version ~ ' is null), count_if(' ~ version ~ ' <= newest),'
            ~ ' cast(max(newest) as string) from ' ~ added ~ ' as added cross join (select max('
            ~ start ~ ') as newest from ' ~ dbt_history._quoted_relation(target) ~ ') as stored'
    ).rows[0] %}
    {% set problems = [] %}
    {% if row[0] %}
        {% do problems.append(
            settings.versions.start ~ ' is NULL in ' ~ row[0] ~ ' new rows: give every row its'
                ~ ' version, or leave the column out of the SELECT'
        ) %}
    {% endif %}
    {% if row[1] and settings.version_order == 'increasing' %}
        {% do problems.append(
            row[1] ~ ' new rows have a version that is not after the current one, ' ~ row[2]
                ~ ' (version_order: increasing)'
        ) %}
    {% endif %}
    {% do dbt_history._refuse_columns(problems, staged, caller_name) %}
{% endmacro %}
