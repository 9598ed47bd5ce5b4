{#
    The states of a branch, as a sub-query for the FROM clause: its own, and otherwise those of its
    base. Without `at` now, else as of a transaction of the log.

        main     f v1 at 1, v2 at 5     g v1 at 3
        branch   forked at 4, f v2' at 6
        at 4     f v1, g v1
        at 6     f v2', g v1            the change of main at 5 is not visible before a rebase

    A point below the horizon fails, as in `as_of`, unless a tag names it. The base is looked up
    when the model is compiled; after a rebase the SQL fails with a message until the model is
    built again.
#}
{% macro branch_as_of(states, branches, branch, at=none, id='id', namespace='@ns:com:here:xyz') %}
    {% if not execute %}
        {% do return('(select * from ' ~ states ~ ' where `txn_next` is null)') %}
    {% endif %}
    {%- set line = dbt_history._branch_lineage(branches, branch, 'branch_as_of') -%}
    {%- set features = {'key': dbt_history._key_columns(id)} -%}
    {%- set links = dbt_history._links_of(line.epochs, branch, at) -%}
    {%- set guards = dbt_history._not_cleaned(states, links) if at is not none else [] -%}
    {%- set unchanged = dbt_history._branches_unchanged(
        branches, line.facts, branch, 'branch_as_of',
    ) -%}
    {%- if unchanged -%} {%- do guards.append(unchanged) -%} {%- endif -%}
    {%- set shown = dbt_history._visible(states, dbt_history._item(features), links, namespace) -%}
    {%- do return(
        '(select * from ' ~ shown ~ ' as visible where ' ~ guards | join(' and ') ~ ')' if guards
            else shown
    ) -%}
{% endmacro %}
