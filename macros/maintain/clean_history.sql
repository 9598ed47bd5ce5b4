{#
    Removes versions that ended long ago, and says so: the greatest end among them is the table's horizon, and a reader that asks for
    an earlier point fails with it. From the horizon on every reader gives what it gave before.

        cutoff                                            |
        a  [-----)                removed                 |
        b     [---------)         removed, its end is     |
        c          [------------------------------------------- stays, as does whatever ends at the cutoff or later
                        ^ the horizon

    dbt run-operation clean_history --args '{table: customers, before: "2024-01-01"}'

    One or more of: `before` (a time, a version, a tag), `age` ('90 days'), `keep_versions` (so many newest ones of each record stay);
    a version goes if all that are given let it go. Open versions stay whatever the cutoff, and so do versions in force at a tag's
    instant and those that `keep_referenced` names. `dry_run` counts and writes nothing.
#}
{% macro clean_history(table, before=none, age=none, keep_versions=none, keep_referenced=[], dry_run=false, convention=none, key=none, author=none, reason=none) %}
    {% set tables = dbt_history._maintained(table, convention, key, 'clean_history') %}
    {% do dbt_history._check_cutoff(tables, before, age, keep_versions) %}
    {% set limits = {'before': before, 'age': age, 'keep_versions': keep_versions, 'keep_referenced': keep_referenced} %}
    {% set results = {} %}
    {% for table in tables %}
        {% set limit = dict(limits, cutoff=dbt_history._cutoff(table, before, age)) %}
        {% set plan = dbt_history._plan_cleaning(table, limit) %}
        {% if plan.dropped and not dry_run %}
            {# The horizon is published before anything goes, and the tags are read again after: whoever comes in between is heard. #}
            {% do dbt_history._add_mark(table, 'horizon', instant=plan.horizon, author=author, reason=reason) %}
            {% do dbt_history._remove_versions(table, limit, plan) %}
        {% endif %}
        {% do results.update({table.name: plan}) %}
        {% do log(
            'dbt_history: ' ~ table.name ~ ': ' ~ plan.dropped ~ ' of ' ~ plan.versions ~ ' versions '
            ~ ('would be dropped' if dry_run else 'dropped') ~ (', horizon ' ~ plan.horizon if plan.dropped else '')
            ~ (', kept for tags: ' ~ plan.tags if plan.tags else ''), info=true
        ) %}
    {% endfor %}
    {% do return(results) %}
{% endmacro %}
