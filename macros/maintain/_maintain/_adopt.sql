{#
    The model in `folder` that goes on with a snapshot: {'name', 'sql'}; errors are appended to
    `problems`.
#}
{% macro _adopted_model(node, folder, problems) %}
    {% set own = [] %}
    {% set key = dbt_history._columns_of_key(node.config.get('unique_key')) or [] %}
    {% set names = dbt_history._names_of_snapshot(node) %}
    {% set relation = dbt_history._with_format(load_relation(api.Relation.create(
        database=node.database, schema=node.schema, identifier=node.alias,
    ))) %}
    {% set stored = {} %}
    {% if relation is none or relation.is_view or not relation.is_delta %}
        {% do own.append('the table is not there, or is no Delta table') %}
    {% else %}
        {% set stored = dbt_history._types_by_name(dbt_history._table_columns(relation)) %}
        {% for column in key + [names.dbt_valid_from, names.dbt_valid_to]
            if column | lower not in stored %}
            {% do own.append(
                column ~ ' is no column of the table' ~ (
                    ': a unique_key that is an expression has to be a column of the SELECT'
                        if column in key else ''
                )
            ) %}
        {% endfor %}
    {% endif %}
    {% set settings = dbt_history._settings_of_snapshot(node, names, stored, own) %}
    {% if not own %}
        {% do dbt_history._contradictions(relation, key, settings, own) %}
        {% if names.dbt_is_deleted | lower in stored %}
            {% do dbt_history._rows_of_deletions(relation, key, settings, names, own) %}
        {% endif %}
    {% endif %}
    {% set custom = dbt_history._schema_of_adopted(node, folder, own) %}
    {% for problem in own %}{% do problems.append(node.name ~ ': ' ~ problem) %}{% endfor %}
    {% do return({
        'name': node.name,
        'sql': none if own else dbt_history._adopted_sql(node, key, settings, custom),
    }) %}
{% endmacro %}


{#
    The setting `schema` with which dbt looks for the model's table where the snapshot's is; if
    there is none, this is appended to `problems`, because the model would begin a new table.

        table in               profile's schema   generate_schema_name     schema=
        analytics              analytics          dbt's                    none
        analytics_snapshots    analytics          dbt's                    "snapshots"
        snapshots              analytics          the custom name alone    "snapshots"
        snapshots              analytics          dbt's                    refused
#}
{% macro _schema_of_adopted(node, folder, problems) %}
    {% set prefix = target.schema ~ '_' %}
    {% set said = node.config.get('schema') %}
    {% set candidates = ([said] if said else []) + [none]
        + ([node.schema[prefix | length:]] if node.schema.startswith(prefix) else [])
        + [node.schema] %}
    {% set folders = folder.split('/')[1:] %}
    {% set state = namespace(found=false, custom=none) %}
    {% set elsewhere = [] %}
    {% for custom in candidates if not state.found %}
        {% set place = generate_schema_name(custom, dict(
            node, resource_type='model', path=(folders + [node.name ~ '.sql']) | join('/'),
            original_file_path=folder ~ '/' ~ node.name ~ '.sql',
            fqn=[node.get('package_name')] + folders + [node.name],
            config=dict(node.config, materialized='history', schema=custom),
        )) | string | trim %}
        {% set state.found, state.custom = place | lower == node.schema | lower, custom %}
        {% do elsewhere.append(
            place ~ (' with schema: ' ~ custom if custom else ' without a setting schema')
        ) %}
    {% endfor %}
    {% if not state.found %}
        {% do problems.append(
            'the table is in ' ~ node.schema ~ ', where dbt would not look for a model, and a new'
                ~ ' table would begin\n        it looks in '
                ~ elsewhere | unique | join('\n        and in ')
            ~ '\n      to keep the table where it is, add to macros/ (or to your'
                ~ ' generate_schema_name):\n        {'
            ~ '% macro generate_schema_name(custom_schema_name, node) %' ~ '}{'
                ~ "{ '" ~ node.schema ~ "' if node.name == '" ~ node.name
            ~ "' else default__generate_schema_name(custom_schema_name, node) }" ~ '}{'
                ~ '% endmacro %' ~ '}'
        ) %}
    {% endif %}
    {% do return(state.custom) %}
{% endmacro %}


{# `meta.history` of the model; what a `history` model does not do is appended to `problems`. #}
{% macro _settings_of_snapshot(node, names, stored, problems) %}
    {% set said = dbt_history._history_meta(node, 'adopt_snapshot') %}
    {% set settings = dbt_history._convention_of_snapshot(
        node, stored.get(names.dbt_valid_from | lower), said,
    ) %}
    {% set active = dbt_history.convention(settings).active %}
    {% if active and active | lower not in stored %}
        {% do settings.update({'active': 'none'}) %}
    {% endif %}
    {% for column in [names.dbt_valid_from, names.dbt_valid_to]
        if stored.get(column | lower, 'timestamp') not in ['timestamp', 'date'] %}
        {% do problems.append(
            column ~ ' is ' ~ stored[column | lower] ~ ': a history has a timestamp or a date there'
        ) %}
    {% endfor %}
    {% set renamed = {} %}
    {% for column in ['dbt_scd_id', 'dbt_updated_at', 'dbt_is_deleted']
        if names[column] != column and names[column] | lower in stored %}
        {% do renamed.update({column: names[column]}) %}
    {% endfor %}
    {% do settings.update({'snapshot_columns': renamed} if renamed else {}) %}
    {% set strategy = node.config.get('strategy') %}
    {% if strategy not in ['timestamp', 'check', 'dbt_history.versions'] %}
        {% do problems.append('its strategy is ' ~ strategy) %}
    {% endif %}
    {% set updated_at = node.config.get('updated_at') %}
    {% if updated_at and updated_at | lower not in stored %}
        {% do problems.append(
            'updated_at is ' ~ updated_at ~ ', which is no column of the table'
        ) %}
    {% elif updated_at %}
        {% do settings.update({'updated_at': updated_at}) %}
    {% endif %}
    {% set checked = node.config.get('check_cols') %}
    {% set skips_time = updated_at and strategy == 'dbt_history.versions' %}
    {% if checked and checked != 'all' %}
        {% set not_compared = [active] + ([updated_at] if skips_time else []) %}
        {% do settings.update({'track_columns': dbt_history._key_columns(checked)
            | reject('in', not_compared) | list}) %}
    {% elif skips_time %}
        {# A new time alone makes no version, as in the strategy. #}
        {% do settings.update({'except': [updated_at]}) %}
    {% endif %}
    {% set deletes = node.config.get('hard_deletes')
        or ('invalidate' if node.config.get('invalidate_hard_deletes') else 'ignore') %}
    {% do settings.update({'source': 'changes'} if deletes == 'ignore' else {}) %}
    {% do return(settings) %}
{% endmacro %}


{#
    The rows that `hard_deletes: new_record` has written for deletions, up to five, and the
    statement that removes them. In a history the time of a deletion is a gap:

        snapshot    [ a -----------)[ a, deleted -----)[ b ------
        history     [ a -----------)                   [ b ------
#}
{% macro _rows_of_deletions(relation, key, settings, names, problems) %}
    {% set convention = dbt_history.convention(settings) %}
    {% set table = dbt_history._quoted_relation(relation) %}
    {% set is_deleted = 'lower(cast(' ~ dbt_history._quote(names.dbt_is_deleted)
        ~ " as string)) = 'true'" %}
    {% set rows = run_query(
        'select to_json(struct('
            ~ (dbt_history._quoted(key + [convention.start, convention.end]) | join(', '))
            ~ ')) from ' ~ table ~ ' where ' ~ is_deleted ~ ' order by 1 limit 5'
    ).rows %}
    {% if rows %}
        {% set found = [] %}
        {% for row in rows %}{% do found.append(row[0]) %}{% endfor %}
        {% do problems.append(
            'rows for deletions (hard_deletes: new_record): a history has a gap there, and the'
                ~ ' version before each has ended already\n        ' ~ found | join('\n        ')
            ~ '\n      to remove them:\n        delete from ' ~ table ~ ' where ' ~ is_deleted
        ) %}
    {% endif %}
{% endmacro %}


{#
    The rows of a table that contradict each other, up to five of each kind, and a statement that
    corrects them.

        [ a -----------------)          a ends where b begins: dbt closes a version at the start
                  [ b ------------      of the next one
#}
{% macro _contradictions(relation, key, settings, problems) %}
    {% set convention = dbt_history.convention(settings) %}
    {% set keys = dbt_history._quoted(key) | join(', ') %}
    {% set start = dbt_history._quote(convention.start) %}
    {% set end = dbt_history._quote(convention.end) %}
    {% set table = dbt_history._quoted_relation(relation) %}
    {% set rows = run_query(
        'select to_json(struct(' ~ keys ~ ', ' ~ start ~ ', ' ~ end ~ ')), '
            ~ '`__is_double` from (select *, ' ~ start ~ ' is null or count(*) over (partition by '
            ~ keys ~ ', ' ~ start ~ ') > 1 as `__is_double`, lead(' ~ start
            ~ ') over (partition by ' ~ keys ~ ' order by ' ~ start ~ ') as `__next` from ' ~ table
            ~ ') as `versions` where `__is_double` or coalesce('
            ~ dbt_history._end_of_period(convention)
            ~ " > `__next`, `__next` is not null and " ~ dbt_history._has_open_end(convention)
            ~ ') order by 2, 1 limit 10'
    ).rows %}
    {% set doubled, overlapping = [], [] %}
    {% for row in rows %}{% do (doubled if row[1] else overlapping).append(row[0]) %}{% endfor %}
    {% if doubled %}
        {% do problems.append(
            'versions with the same key and ' ~ convention.start
                ~ ', or without one: keep one of each\n        ' ~ doubled[:5] | join('\n        ')
        ) %}
    {% endif %}
    {% if overlapping %}
        {% set before = dbt_history._shift_by_gap('following.`__next`', convention) %}
        {% set same = [] %}
        {% for name in key %}
            {% do same.append(
                'versions.' ~ dbt_history._quote(name) ~ ' <=> following.'
                    ~ dbt_history._quote(name)
            ) %}
        {% endfor %}
        {% do problems.append(
            'versions that last beyond the start of the next one\n        '
                ~ overlapping[:5] | join('\n        ')
            ~ '\n      to end each where the next one begins:\n        merge into ' ~ table
            ~ ' as versions using (select * from (select ' ~ keys ~ ', ' ~ start ~ ', lead('
            ~ start ~ ') over (partition by ' ~ keys ~ ' order by ' ~ start
            ~ ') as `__next` from ' ~ table ~ ')) as following on ' ~ same | join(' and ')
            ~ ' and versions.' ~ start ~ ' = following.' ~ start
            ~ ' and following.`__next` is not null when matched and coalesce(versions.' ~ end
            ~ ' > ' ~ before ~ ', true) then update set ' ~ end ~ ' = ' ~ before
            ~ (', ' ~ dbt_history._quote(convention.active) ~ ' = false' if convention.active
                else '')
        ) %}
    {% endif %}
{% endmacro %}


{#
    The model's file: the snapshot's SELECT under another materialization. dbt has no name for the
    active column of a convention, so the snapshot selects it; a history writes it itself. The
    schema is written also if it is none: else the +schema of the model's folder would apply.
#}
{% macro _adopted_sql(node, key, settings, custom) %}
    {%- set select = modules.re.sub('(?s)[{][{]-?\\s*config\\s*[(].*?[)]\\s*-?[}][}]', '',
        node.get('raw_code') or node.get('raw_sql') or '') | trim -%}
    {%- set active = dbt_history.convention(settings).active -%}
    {%- if active -%}
        {%- set select = 'select * except (' ~ dbt_history._quote(active) ~ ') from (\n' ~ select
            ~ '\n) as selected' -%}
    {%- endif -%}
    {%- set lines = [
        '{{', '    config(', "        materialized='history',",
        '        unique_key=' ~ (tojson(key[0]) if key | length == 1 else tojson(key)) ~ ',',
    ] -%}
    {%- if node.alias != node.name -%}
        {%- do lines.append('        alias=' ~ tojson(node.alias) ~ ',') -%}
    {%- endif -%}
    {%- do lines.append(
        '        schema=' ~ ('none' if custom is none else tojson(custom)) ~ ','
    ) -%}
    {%- do lines.append("        meta={'history': {") -%}
    {%- for name, value in settings.items() -%}
        {%- do lines.append("            '" ~ name ~ "': " ~ tojson(value) ~ ',') -%}
    {%- endfor -%}
    {%- do lines.extend(['        }},', '    )', '}}', '', select]) -%}
    {%- do return(lines | join('\n')) -%}
{% endmacro %}
