{# Why a convention cannot be used, as text. #}
{% macro _convention_problems(record, append_only) %}
    {% set problems = [] %}
    {% if not record['start'] or (not record['end'] and not record.get('append_only'))
        or record['start'] | string | lower == record['end'] | string | lower %}
        {% do problems.append('a convention needs a start column and another end column') %}
    {% endif %}
    {% for field in ['start', 'end', 'active', 'version_id']
        if record[field] is not none and record[field] is not string %}
        {% do problems.append(
            field ~ ' is ' ~ tojson(record[field], record[field]) ~ ', which is not a column name'
        ) %}
    {% endfor %}
    {% if append_only is not boolean %}
        {% do problems.append(
            'append_only is ' ~ tojson(append_only, append_only) ~ ': true or false'
        ) %}
    {% endif %}
    {% if record['type'] not in ['timestamp', 'bigint', 'date'] %}
        {% do problems.append('type is ' ~ record['type']) %}
    {% endif %}
    {% if not dbt_history._is_gap(record['gap'], record['type']) %}
        {% do problems.append('gap is ' ~ record['gap']) %}
    {% endif %}
    {% if record['open_end'] is not none
        and not dbt_history._is_point(record['open_end'] | string, record['type']) %}
        {% do problems.append(
            'open_end is ' ~ record['open_end'] ~ ', which is not a ' ~ record['type']
        ) %}
    {% endif %}
    {% do return(problems) %}
{% endmacro %}


{# Whether this is a gap on an axis of this type, in the form that `_shift_by_gap` accepts. #}
{% macro _is_gap(gap, type) %}
    {% set forms = {
        'timestamp': '^(0|[0-9]+ (microsecond|millisecond|second|minute|hour|day)s?)$',
        'bigint': '^[0-9]+$', 'date': '^[0-9]+( days?)?$',
    } %}
    {% do return(modules.re.match(forms.get(type, '.'), gap | string) is not none) %}
{% endmacro %}


{#
    Whether text is a value of this type of axis, in the form that `_literal` accepts: a 64-bit
    integer, or a valid date, optionally with a time and a zone.
#}
{% macro _is_point(text, type) %}
    {% if type == 'bigint' %}
        {% do return(
            modules.re.match('^-?[0-9]{1,19}$', text) is not none
                and -9223372036854775808 <= text | int <= 9223372036854775807
        ) %}
    {% endif %}
    {% set clock = '([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?)?('
        ~ ' ?([zZ]|UTC|GMT|[+-][0-9]{1,2}:[0-9]{2}|[A-Za-z_]+/[A-Za-z_/+0-9-]+))?' %}
    {% set found = modules.re.match(
        '^([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2})' ~ ('' if type == 'date' else clock) ~ '$', text,
    ) %}
    {% if found is none %}
        {% do return(false) %}
    {% endif %}
    {% set year = found.group(1) | int %}
    {% set is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) %}
    {% set days = [
        31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31,
    ][found.group(2) | int - 1] %}
    {% do return(1 <= found.group(3) | int <= days) %}
{% endmacro %}


{#
    A convention describes how a version table stores a period.

        start            end = next start - gap
          |-----------------|  gap  |---------------- open_end
          [ version 1       )       [ version 2

    `convention` is one of the five names, or a mapping: its key `convention` names the convention
    to start from (a mapping without it defines a new one), and every other key overrides a field.
#}
{% macro convention(convention='fivetran') %}
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
        'auto_cdc': {
            'start': '__START_AT', 'end': '__END_AT', 'active': none,
            'type': 'timestamp', 'open_end': none, 'gap': 0,
        },
    } %}
    {# `node` is the node named in the message. #}
    {% set settings = dict(convention) if convention is mapping else {'convention': convention}
        if convention is not none else {} %}
    {% set node = settings.pop('node', none) or dbt_history._node_of_context() %}
    {% set own = {
        'start': none, 'end': none, 'active': none, 'type': 'timestamp', 'open_end': none, 'gap': 0,
    } %}
    {% set said = settings.get('convention') %}
    {% set name = said if said is not none else settings.get('name') %}
    {% if said is not none and (said is not string or said not in known) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'no convention has this name' if said is string
                else 'this is not the name of a convention',
            got=said if said is string else tojson(said, said),
            expected=(known.keys() | join(', ')) ~ ', or a mapping with start and end',
            node=node,
            way_out=dbt_history._did_you_mean(said, known)[2:] or none,
        )) %}
    {% endif %}
    {% set record = dict(known.get(name, own)) %}
    {% for field in ['start', 'end', 'active', 'type', 'open_end', 'gap', 'version_id']
        if field in settings %}
        {% do record.update({
            field: dbt_history._none_or(settings[field]) if field in ['active', 'open_end']
                else settings[field]
        }) %}
    {% endfor %}
    {# The axis of `validity` is one of times or of integers. #}
    {% if name == 'validity' and 'type' not in settings and record.open_end is integer %}
        {% do record.update({'type': 'bigint'}) %}
    {% endif %}
    {% do record.update({'name': name or 'own'}) %}
    {# Versions without an end: `history_append` writes them, batches are refused. #}
    {% if settings.get('append_only') %}
        {% do record.update({'append_only': true, 'end': none, 'open_end': none}) %}
    {% endif %}
    {% if not record.get('version_id') %}
        {% do record.update({'version_id': record['start']}) %}
    {% endif %}
    {% set problems = dbt_history._convention_problems(
        record, settings.get('append_only', false),
    ) %}
    {% if problems %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            'convention',
            'a convention needs a start column, an end column and a type: ' ~ problems | join('; '),
            got=settings,
            expected='start and end columns; type timestamp, bigint or date; a gap such as 0, 1'
                ~ ' (bigint, date) or 1 millisecond (timestamp)',
            node=node,
        )) %}
    {% endif %}
    {# A gap of zero may be a text: '0', '0 days'. #}
    {% if modules.re.match('^0+( |$)', record['gap'] | string) %}
        {% do record.update({'gap': 0}) %}
    {% endif %}
    {% do return(record) %}
{% endmacro %}


{# The columns of the period that a convention has: start, end, active flag. #}
{% macro _period_columns(convention) %}
    {% do return([convention.start, convention.end, convention.active] | reject('none') | list) %}
{% endmacro %}


{# The columns of a key that are columns of the period: with them each version would be a record. #}
{% macro _period_columns_in(key, convention) %}
    {% set period = dbt_history._period_columns(convention) | map('lower') | list %}
    {% set found = [] %}
    {% for column in key if column | lower in period %}{% do found.append(column) %}{% endfor %}
    {% do return(found) %}
{% endmacro %}
