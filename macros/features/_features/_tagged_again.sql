{#
    After a tag is written, what may have happened since it was checked is looked at again. Of two
    calls at least one sees the other, and removes its own point:

        this call     checked                 17 written    read again: 18 is another's; not 17
        other call              18 written
#}


{# Before a tag is written: its points, and the spaces that are off. #}
{% macro _note_before_tag(table, tag, marks) %}
    {% do table.update({
        'points': marks.tags | selectattr('name', 'equalto', tag) | map(attribute='instant') | list,
        'ends_of_spaces': dbt_history._ends_of_spaces(table),
    }) %}
{% endmacro %}


{# The transactions after which the history of spaces is off; no other table has any. #}
{% macro _ends_of_spaces(table) %}
    {% do return(
        dbt_history._space_facts(table.relation) | selectattr('state', 'equalto', 'off')
            | map(attribute='since') | list if table.convention.name == 'naksha' else []
    ) %}
{% endmacro %}


{# Problems: states that a new tag names may have been removed since it was checked. #}
{% macro _check_ends_again(tables, problems) %}
    {% for table in tables %}
        {% set ends = dbt_history._ends_of_spaces(table) %}
        {% if ends | length > table.ends_of_spaces | length
            and ends | max > table.instant | int %}
            {% do problems.append(
                table.name ~ ': the history of a space up to transaction ' ~ ends | max
                    ~ ' was removed meanwhile (disable_space_history)'
            ) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{# Sets the tag in all tables, or, if another process writes them meanwhile, in none. #}
{% macro _set_tag(tables, tag, author, reason, caller_name) %}
    {% set problems = [] %}
    {% do dbt_history._add_tags(tables, tag, problems, author, reason) %}
    {% do dbt_history._look_at_tag_again(tables, tag, problems) %}
    {% do dbt_history._refuse_tag(tag, problems, caller_name) %}
{% endmacro %}


{#
    Problems: another call has set the tag, too; readers would take the later point. With a problem
    no table keeps its new point.
#}
{% macro _look_at_tag_again(tables, tag, problems) %}
    {% do dbt_history._check_ends_again(tables, problems) %}
    {% for table in tables %}
        {% for mark in dbt_history._marks_of(table).tags
            if mark.name == tag and mark.instant not in table.points + [table.instant] %}
            {% do problems.append(
                table.name ~ ': another call has set the tag to ' ~ mark.instant
                    ~ ' meanwhile; run this one again if it has to be ' ~ table.instant
            ) %}
        {% endfor %}
    {% endfor %}
    {% for table in tables if problems and table.instant not in table.points %}
        {% do dbt_history._remove_tag(table, tag, table.instant) %}
    {% endfor %}
{% endmacro %}
