{#
    Checks an existing table that this package did not write, before the first batch. Key and start
    must identify a version, or a close would change two of them; and a MERGE must be able to write
    every column and to find a record by its key.
#}
{% macro _refuse_adoption(relation, settings, staged, caller_name) %}
    {% set problems = dbt_history._unusable_columns(relation)
        + dbt_history._unusable_rows(relation, settings)
        + dbt_history._unusable_ends(relation, settings.convention) %}
    {% if dbt_history._table_property(relation, 'delta.appendOnly') == 'true' %}
        {% do problems.append(
            "the table is append-only, and a batch closes and removes rows: alter table ... set"
                ~ " tblproperties ('delta.appendOnly' = 'false')"
        ) %}
    {% endif %}
    {% do dbt_history._refuse_existing(
        problems, 'a table with plain columns and one row per key and ' ~ settings.convention.start,
        staged, caller_name,
    ) %}
{% endmacro %}


{# Identity and generated columns, which a MERGE cannot write; and CHAR. #}
{% macro _unusable_columns(relation) %}
    {% set problems = [] %}
    {% set fields = dbt_history._stored_fields(relation) %}
    {% for field in fields %}
        {% if dbt_history._is_identity(field) %}
            {% do problems.append(
                'column ' ~ field.name
                    ~ ' is an identity column: copy the table into one where it is a plain number'
            ) %}
        {% elif field.metadata.get('delta.generationExpression') is not none %}
            {% do problems.append(
                'column ' ~ field.name ~ ' is generated ('
                    ~ field.metadata['delta.generationExpression']
                    ~ '): copy the table into one where it is plain'
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems + dbt_history._padded_columns(fields)) %}
{% endmacro %}


{#
    Rows without a start, rows that one close would change together, and rows that end before they
    begin, which a batch at their start would not find; up to five of each.
#}
{% macro _unusable_rows(relation, settings) %}
    {% set problems = [] %}
    {% set convention = settings.convention %}
    {% set names = settings.key + dbt_history._identity_columns(settings.convention) %}
    {% set cells = dbt_history._quoted(names) | join(', ') %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set kind = 'case when ' ~ start ~ " is null then 'no start' when count(*) > 1 then 'doubles'"
        ~ ' when bool_or(' ~ dbt_history._quote(convention.end) ~ ' < '
        ~ dbt_history._shift_by_gap(start, convention) ~ ") then 'inverted' end" %}
    {% set rows = run_query(
        'select kind, to_json(version) from (select *, row_number() over (partition by kind order'
            ~ ' by kind) as place from (select struct(' ~ cells
        ~ ', count(*) as `rows`) as version, ' ~ kind ~ ' as kind from '
            ~ dbt_history._quoted_relation(relation) ~ ' group by ' ~ cells
        ~ ') as versions where kind is not null) as placed where place <= 5'
    ).rows %}
    {% set nulls, doubles, inverted = [], [], [] %}
    {% set lists = {'no start': nulls, 'doubles': doubles, 'inverted': inverted} %}
    {% for row in rows %}{% do lists[row[0]].append(row[1]) %}{% endfor %}
    {% if nulls %}
        {% do problems.append(
            settings.convention.start
                ~ ' is NULL in some rows: give them a start, or remove them\n      '
                ~ nulls | join('\n      ')
        ) %}
    {% endif %}
    {% if doubles %}
        {% do problems.append(
            'several versions with the same key and start: remove the duplicates, or set'
                ~ ' meta.history.version_id to a column that distinguishes them\n      '
            ~ doubles | join('\n      ')
        ) %}
    {% endif %}
    {% if inverted %}
        {% do problems.append(
            convention.end ~ ' is more than one gap before ' ~ convention.start
                ~ ' in some versions: correct their ends, or remove them\n      '
                ~ inverted | join('\n      ')
        ) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{#
    Versions whose end is open by its year, and that the convention would take for ended.

        table         [ a ------------- 9999-12-31
        convention    an open version ends with NULL
#}
{% macro _unusable_ends(relation, convention) %}
    {% if convention.active or convention.type == 'bigint' %}
        {% do return([]) %}
    {% endif %}
    {% set row = run_query(
        'select count(*), min('
            ~ dbt_history._axis_number(dbt_history._quote(convention.end), convention) ~ ') from '
            ~ dbt_history._quoted_relation(relation)
        ~ ' where ' ~ dbt_history._has_open_end(convention) ~ ' and not '
            ~ dbt_history._is_open(convention)
    ).rows[0] %}
    {% do return([
        row[0] ~ ' versions end in the year 9999 or later and would count as ended: set'
            ~ " meta.history.open_end: '" ~ dbt_history._axis_text(row[1], convention) ~ "'"
    ] if row[0] else []) %}
{% endmacro %}
