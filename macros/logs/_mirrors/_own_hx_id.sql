{#
    The column of a mirror's own ids: as its commits record it, else `<main>_hx_id`. A main table
    that was renamed keeps its ids: links of other mirrors have them. If the commits of a table with
    rows record nothing (it is a clone, or they have expired), and it has no column of that name,
    the ids are found by their place:

        station_id   mod_time   mod_user   deleted   station_hx_id   network_hx_id
                                                     own             a link
#}
{% macro _own_hx_id(log, main) %}
    {% set named = main.identifier ~ '_hx_id' %}
    {% set recorded = (((log or {}).get('about') or {}).get('hx') or {}).get('id') %}
    {% if recorded or log is none or (log.last_batch is none and log.is_empty) %}
        {% do return(recorded or named) %}
    {% endif %}
    {% set columns = dbt_history._table_columns(this) %}
    {% if not dbt_history._missing_columns([named], columns) %}
        {% do return(named) %}
    {% endif %}
    {% set names = columns | map(attribute='name') | list %}
    {% set there = names | map('lower') | list %}
    {% set place = there.index('deleted') if 'deleted' in there else 0 %}
    {% if there[[place - 2, 0] | max:place] == ['mod_time', 'mod_user']
        and (there[place + 1:] | first | default('')).endswith('_hx_id') %}
        {% do return(names[place + 1]) %}
    {% endif %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        'hx_rows', 'the table has rows, and neither its commits nor its columns tell which column'
            ~ ' has the ids of the mirror',
        got=names | join(', '),
        expected=named ~ ', or mod_time, mod_user, deleted and the ids in this order',
        node=model.unique_id,
        way_out='alter table ' ~ dbt_history._quoted_relation(this) ~ ' alter column <the ids>'
            ~ ' after `deleted`',
    )) %}
{% endmacro %}
