{#
    A convention says how a version table writes a period down.

        start            end = next start - gap
          |-----------------|  gap  |---------------- open_end
          [ version 1       )       [ version 2

    `convention` is one of the four names, or a mapping: `convention` names the one to start from (or is
    left out for a mapping of the user's own) and every other key overrides it.
#}
{% macro convention(convention='fivetran') %}
    {% do return(adapter.dispatch('convention', 'dbt_history')(convention)) %}
{% endmacro %}


{% macro default__convention(convention) %}
    {% set known = {
        'fivetran': {
            'start': '_fivetran_start', 'end': '_fivetran_end', 'active': '_fivetran_active',
            'type': 'timestamp', 'open_end': '9999-12-31 23:59:59.999', 'gap': '1 millisecond',
        },
        'validity': {
            'start': 'valid_from', 'end': 'valid_to', 'active': none,
            'type': 'timestamp', 'open_end': none, 'gap': 0,
        },
        'naksha': {
            'start': 'txn', 'end': 'txn_next', 'active': none, 'version_id': 'i',
            'type': 'bigint', 'open_end': none, 'gap': 0,
        },
        'dbt_snapshot': {
            'start': 'dbt_valid_from', 'end': 'dbt_valid_to', 'active': none,
            'type': 'timestamp', 'open_end': none, 'gap': 0,
        },
    } %}
    {# `node` says whose settings they are, for the message. #}
    {% set settings = dict(convention) if convention is mapping else {'convention': convention} if convention is not none else {} %}
    {% set node = settings.pop('node', none) or dbt_history._node_of_context() %}
    {% set own = {'start': none, 'end': none, 'active': none, 'type': 'timestamp', 'open_end': none, 'gap': 0} %}
    {% set said = settings.get('convention') %}
    {% set name = said if said is not none else settings.get('name') %}
    {% if said is not none and (said is not string or said not in known) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'no convention has this name' if said is string else 'this is no name of a convention',
            got=said if said is string else tojson(said, said),
            expected=(known.keys() | join(', ')) ~ ', or a mapping with start and end',
            node=node,
            way_out=dbt_history._did_you_mean(said, known)[2:] or none,
        )) %}
    {% endif %}
    {% set record = dict(known.get(name, own)) %}
    {% for field in ['start', 'end', 'active', 'type', 'open_end', 'gap', 'version_id'] if field in settings %}
        {% do record.update({field: settings[field]}) %}
    {% endfor %}
    {% do record.update({'name': name or 'own'}) %}
    {# Append-only: a version never ends, and the table has no column for it. For readers; no batch can be applied to it. #}
    {% if settings.get('append_only') %}
        {% do record.update({'append_only': true, 'end': none, 'open_end': none}) %}
    {% endif %}
    {% if not record.get('version_id') %}
        {% do record.update({'version_id': record['start']}) %}
    {% endif %}
    {% set problems = dbt_history._convention_problems(record, settings.get('append_only', false)) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'a convention needs a start column, an end column and a type: ' ~ problems | join('; '),
            got=settings,
            expected='start and end columns; type timestamp, bigint or date; a gap such as 0, 1 (bigint, date) or 1 millisecond (timestamp)',
            node=node,
        )) %}
    {% endif %}
    {% do return(record) %}
{% endmacro %}
