{#
    The references as records: {'columns', 'key' of the referenced table, 'history', 'id' its own
    id, 'name' of the link, 'is_own', 'log', 'is_there', 'populated', 'frames'}; `frames`: from when
    its rows are visible (`_seen_from`). Key and own id are those that the referenced mirror has
    committed; of the mirror itself, `own_key` and `own_id`.
#}
{% macro _hx_links(references, own_id, own, own_key=none) %}
    {% set links = [] %}
    {% set references = dbt_history._tables_named(references) %}
    {% do dbt_history._refuse_references(references) %}
    {% for reference in references %}
        {% set history = reference.history %}
        {% set is_own = dbt_history._quoted_relation(
            history
        ) | lower == dbt_history._quoted_relation(own) | lower %}
        {% set table = dbt_history._with_format(dbt_history._loaded(history, 'hx_rows'))
            if execute else none %}
        {% set log = dbt_history._commit_log(table, model.unique_id)
            if table is not none and not table.is_view else none %}
        {% set about = ((log or {}).get('about') or {}).get('hx', {}) %}
        {% set columns = dbt_history._key_columns(
            reference.get('columns') or reference.get('column')
        ) %}
        {% set id = reference.get('id') or about.get('id')
            or (own_id if is_own else history.identifier ~ '_id') %}
        {% set link = {
            'columns': columns, 'history': history, 'id': id, 'name': reference.get('name') or id,
            'is_own': is_own,
            'log': none if is_own else log, 'populated': none, 'frames': [],
            'is_there': table is not none,
            'key': dbt_history._referenced_key(
                columns, reference.get('key'),
                own_key if is_own and own_key else about.get('key'),
            ),
        } %}
        {% for watermark in ((log or {}).get('watermarks') or {}).values()
            if watermark.get('populated') is not none %}
            {% do link.update({'populated': [link.populated or 0, watermark.populated] | max}) %}
        {% endfor %}
        {% for watermark in ((log or {}).get('watermarks') or {}).values() %}
            {% do link.update({'frames': link.frames + watermark.get('frames', [])}) %}
        {% endfor %}
        {% do links.append(link) %}
    {% endfor %}
    {% do return(links) %}
{% endmacro %}


{% macro _refuse_references(references) %}
    {% set wrong = [] %}
    {% for reference in references
        if not reference.history or reference.history is string
            or not reference.history.identifier %}
        {% do wrong.append(reference) %}
    {% endfor %}
    {% if wrong %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'hx_rows', 'a reference does not name a mirror', got=wrong | join(', '),
            expected="references such as [{'column': 'network_id', 'history':"
                ~ " ref('meta_network_hx')}]",
            node=dbt_history._node_of_context(),
        )) %}
    {% endif %}
{% endmacro %}


{#
    The referenced key in the order of the referencing columns. `said`: the key that the reference
    names, by position. `known`: the key of the mirror, by equal names and the rest by position;
    without one, the key has the names of the columns.

        columns       station    network_id
        known         network_id, id
        result        id         network_id
#}
{% macro _referenced_key(columns, said, known) %}
    {% set said, known = dbt_history._key_columns(said), dbt_history._key_columns(known) %}
    {% if said or columns | length != known | length %}
        {% do return(said or known or columns) %}
    {% endif %}
    {% set there = columns | map('lower') | list %}
    {% set by_name, rest = {}, [] %}
    {% for name in known %}
        {% do by_name.update({name | lower: name}) if name | lower in there
            else rest.append(name) %}
    {% endfor %}
    {% set key = [] %}
    {% for name in there %}
        {% do key.append(by_name.pop(name) if name in by_name else rest.pop(0)) %}
    {% endfor %}
    {% do return(key) %}
{% endmacro %}


{#
    Refuses names that the mirror needs for itself, and references that do not fit the main table;
    all at once.
#}
{% macro _refuse_hx_columns(capture, own_id, links) %}
    {% set problems = [] %}
    {% set names = capture.columns | map(attribute='name') | map('lower') | list %}
    {% set own = ['deleted', own_id] %}
    {% set reserved = own + links | map(attribute='name') | list %}
    {# Values of mod_time and mod_user in the main table are not stored. #}
    {% for name in capture.key
        if name | lower in ['mod_time', 'mod_user']
            or dbt_history._stored_name(name, own) != name %}
        {% do problems.append(
            'key column ' ~ name ~ ' of ' ~ capture.relation ~ ' has a name that the mirror needs:'
                ~ ' rename it, or mirror a view that does'
        ) %}
    {% endfor %}
    {% set stored = [] %}
    {% for name in names %}{% do stored.append(dbt_history._stored_name(name, own)) %}{% endfor %}
    {% for name in links | map(attribute='name') | map('lower') if name in stored %}
        {% do problems.append(
            'column ' ~ name ~ ' of ' ~ capture.relation ~ ' has the name of a link: give the'
                ~ ' reference another name'
        ) %}
    {% endfor %}
    {% for name in reserved | map('lower') | unique
        if (reserved | map('lower') | list).count(name) > 1 %}
        {% do problems.append('two columns would be ' ~ name ~ ': give the reference a name') %}
    {% endfor %}
    {% set problems = problems + dbt_history._link_problems(capture, links, names) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'hx_rows', 'a history mirror cannot be made of these columns',
            got='\n    ' ~ problems | join('\n    '),
            expected="references such as {'column': 'network_id', 'history':"
                ~ " ref('meta_network_hx')}",
            node=model.unique_id,
        )) %}
    {% endif %}
{% endmacro %}


{# What is wrong with the columns of the references. `names`: the main table's columns. #}
{% macro _link_problems(capture, links, names) %}
    {% set problems = [] %}
    {% for link in links %}
        {% for name in link.columns %}
            {% set now = dbt_history._renamed_to(capture, name) %}
            {% if now is not none %}
                {% do problems.append(
                    'a reference names column ' ~ name ~ ', which was renamed: write ' ~ now
                ) %}
            {% elif dbt_history._captured_name(
                capture, name, capture.head.version,
            ) | lower not in names %}
                {% do problems.append(
                    'a reference names column ' ~ name ~ ', which does not exist'
                ) %}
            {% endif %}
        {% endfor %}
        {% if not link.columns or link.columns | length != link.key | length %}
            {% do problems.append(
                'the reference to ' ~ link.history ~ ' has ' ~ link.columns | length
                    ~ ' columns for a key of ' ~ link.key | length
                ~ ' (' ~ link.key | join(', ') ~ ')'
            ) %}
        {% endif %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}
