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
    {% set settings = {'convention': convention} if convention is string else dict(convention or {}) %}
    {% set own = {'start': none, 'end': none, 'active': none, 'type': 'timestamp', 'open_end': none, 'gap': 0} %}
    {% set name = settings.get('convention') or settings.get('name') %}
    {% if settings.get('convention') and settings['convention'] not in known %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'no convention has this name',
            got=name,
            expected=(known.keys() | join(', ')) ~ ', or a mapping with start and end',
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
    {% set problems = dbt_history._convention_problems(record) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'a convention needs a start column, an end column and a type: ' ~ problems | join('; '),
            got=settings,
            expected='start and end columns; type timestamp, bigint or date; a gap such as 0, 1 (bigint, date) or 1 millisecond (timestamp)',
        )) %}
    {% endif %}
    {% do return(record) %}
{% endmacro %}
