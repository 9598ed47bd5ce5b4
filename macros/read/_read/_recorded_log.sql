{#
    What the commits of a mirror or an event table record: {'kind': 'hx' or 'events', 'key', 'id',
    'links', 'renamed', 'until', 'reused' (`_former_names`), 'sources', 'watermarks',
    'is_suspended'}; none for any other table.
#}
{% macro _recorded_log(relation) %}
    {# A CTE has no commits, and dbt's cache cannot look it up. #}
    {% set table = none if relation.is_cte
        else dbt_history._with_format(load_relation(relation)) %}
    {% if table is none or table.is_view %}
        {% do return(none) %}
    {% endif %}
    {% set log = dbt_history._commit_log(table, '') or {} %}
    {% set about = log.get('about') or {} %}
    {% set kind = 'hx' if about.get('hx') else 'events' if about.get('events') else none %}
    {% if kind is none %}
        {% do return(none) %}
    {% endif %}
    {% set watermarks = log.get('watermarks') or {} %}
    {% do return({
        'kind': kind, 'key': about[kind].get('key'), 'id': about[kind].get('id'),
        'links': about[kind].get('links', []), 'renamed': about[kind].get('renamed', {}),
        'until': about[kind].get('until', {}), 'reused': about[kind].get('reused', []),
        'watermarks': watermarks, 'sources': watermarks.keys() | list,
        'is_suspended': dbt_history._is_suspended(log),
    }) %}
{% endmacro %}


{#
    The convention with which a reader reads a log. What is missing in `convention` is what the
    log's commits record; `convention` none: that of the relation's model. Other conventions and
    tables are returned as they are.
#}
{% macro _convention_of_log(relation, convention) %}
    {% set is_named = dbt_history._is_log(convention) %}
    {% if not execute or relation is string or (is_named and convention.get('key'))
        or (convention is not none and not is_named) %}
        {% do return(convention) %}
    {% endif %}
    {% if not is_named %}
        {% set node = dbt_history._node_of_relation(relation) %}
        {% if node is none or node.config.get('materialized') != 'history_append' %}
            {% do return(convention) %}
        {% endif %}
    {% endif %}
    {% set log = dbt_history._recorded_log(relation) %}
    {% if log is none or (is_named and convention.convention != log.kind) %}
        {% do return(convention) %}
    {% endif %}
    {% set recorded = dbt_history._reading_of_log(log) %}
    {% do return(dict(recorded, **(convention or {}))) %}
{% endmacro %}


{# The convention of a log for readers. #}
{% macro _reading_of_log(log) %}
    {% set reading = {'convention': log.kind, 'key': log.key} %}
    {% do reading.update({'id': log.id}) if log.id %}
    {% do return(reading) %}
{% endmacro %}


{% macro _is_log(convention) %}
    {% do return(convention is mapping and convention.get('convention') in ['hx', 'events']) %}
{% endmacro %}
