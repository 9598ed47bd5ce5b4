{#
    Takes one record's data out of all its versions: the columns become NULL, keys, periods and the number of versions stay. The same in
    `mirrors`, such as `_hx` and event tables with the same key. That it happened is recorded, without the key's value.

    dbt run-operation erase_subject --args '{table: customers, only: {customer_id: 7}, mirrors: [customers_hx], reason: "request 12"}'

    `columns`: what to erase, default everything but key and period. Older files still hold the data until they are vacuumed, which
    compact_history does.
#}
{% macro erase_subject(table, only, columns=none, mirrors=[], dry_run=false, convention=none, key=none, author=none, reason=none) %}
    {% set main = dbt_history._maintained(table, convention, key, 'erase_subject') | first %}
    {% set erased = dbt_history._erased_columns(main, only, columns) %}
    {% set places = [dbt_history._full_name(main.relation)] %}
    {% for mirror in mirrors %}
        {% do places.append(dbt_history._referring({'table': mirror})) %}
    {% endfor %}
    {% for place in places %}
        {% set there = dbt_history._types_of_query('select * from ' ~ place).keys() | map('lower') | list %}
        {% set assignments = [] %}
        {% for name in erased if name | lower in there %}
            {% do assignments.append(dbt_history._quote(name) ~ ' = null') %}
        {% endfor %}
        {% set rows = run_query('select count(*) from ' ~ place ~ ' where ' ~ dbt_history._key_filter(only)).rows[0][0] | int %}
        {% if rows and assignments and not dry_run %}
            {% do dbt_history._update_log('update ' ~ place ~ ' set ' ~ assignments | join(', ') ~ ' where ' ~ dbt_history._key_filter(only), place, main) %}
        {% endif %}
        {% do log('dbt_history: ' ~ place ~ ': ' ~ rows ~ ' versions ' ~ ('would be erased' if dry_run else 'erased'), info=true) %}
    {% endfor %}
    {% if not dry_run %}
        {% do dbt_history._add_mark(main, 'erasure', name=local_md5(tojson(only) ~ invocation_id), author=author, reason=reason) %}
        {% do log('dbt_history: older files hold the data until compact_history with vacuum_hours removes them', info=true) %}
    {% endif %}
{% endmacro %}
