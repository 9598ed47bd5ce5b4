{#
    The name under which a mirror stores a column of its main table. A mirror has columns of its own
    (`reserved`: `deleted` and its id); a column of the main table with such a name is stored as
    `main_<name>`, and one with that name as `main_main_<name>`, so that no two names meet and the
    name depends on nothing else.

        main table   deleted        main_deleted        v
        mirror       main_deleted   main_main_deleted   v        deleted (of the mirror)
#}
{% macro _stored_name(name, reserved) %}
    {% set bare = dbt_history._without_main(name) | lower %}
    {% do return('main_' ~ name if bare in reserved | map('lower') else name) %}
{% endmacro %}


{# The main table's name of a column of its mirror; none for a column of the mirror itself. #}
{% macro _main_name(stored, reserved) %}
    {% if dbt_history._without_main(stored) | lower not in reserved | map('lower') %}
        {% do return(stored) %}
    {% endif %}
    {% do return(stored[5:] if stored | lower not in reserved | map('lower') else none) %}
{% endmacro %}


{% macro _without_main(name) %}
    {% do return(modules.re.sub('^(?:[Mm][Aa][Ii][Nn]_)+', '', name | string)) %}
{% endmacro %}
