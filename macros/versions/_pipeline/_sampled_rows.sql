{#
    Refuses `--sample` where a row of the SELECT may be another one without the hidden rows: it
    would become a version.

        table             day 1: a, b         day 2: c
        --sample          hidden              c
        select *                              c         as in a whole run
        select count(*)                       1         3 in a whole run
#}
{% macro _refuse_untrue_sample(select_sql) %}
    {# Without ref and source dbt hides nothing. #}
    {% if not (model.get('depends_on') or {}).get('nodes') %}{% do return(none) %}{% endif %}
    {% set found = dbt_history._what_mixes_rows(dbt_history._analysed_plan(
        'select * from (\n' ~ select_sql ~ '\n) as selected where false'
    )) %}
    {% do dbt_history._refuse_sample(
        'history', 'rows that are made without them would become versions',
        got='a SELECT with ' ~ found | join(', '),
        expected='rows that come each from one row of one table: no join, aggregate, window,'
            ~ ' DISTINCT, LIMIT, UNION or subquery in a condition',
    ) if found %}
{% endmacro %}


{#
    What of an analysed plan makes a row of several rows: its operators, or several tables. The rows
    of a view are those of a table: dbt hides rows of the view, not of what the view reads. Each
    WITH is read once, and of one table, if there are as many references as definitions.
#}
{% macro _what_mixes_rows(plan) %}
    {% set of_rows = ['Project', 'Filter', 'Generate', 'Sort', 'SubqueryAlias', 'WithCTE'] %}
    {% set tables = [
        'View', 'Relation', 'RelationV2', 'HiveTableRelation', 'LocalRelation', 'OneRowRelation',
    ] %}
    {% set operators = [] %}
    {% set view = namespace(depth=none) %}
    {% for indent, operator in modules.re.findall(
        '(?m)^((?:[ :] {2})*)[:+]- (\\w+)', plan.split('== Analyzed Logical Plan ==')[-1],
    ) %}
        {% if view.depth is none or indent | length <= view.depth %}
            {% do operators.append(operator) %}
            {% set view.depth = indent | length if operator == 'View' else none %}
        {% endif %}
    {% endfor %}
    {% set others = operators | unique | reject(
        'in', of_rows + tables + ['CTERelationDef', 'CTERelationRef'],
    ) | list %}
    {% if others %}{% do return(others) %}{% endif %}
    {% if operators | select('in', tables) | list | length != 1 %}
        {% do return(['several tables']) %}
    {% endif %}
    {% do return(
        [] if operators.count('CTERelationRef') == operators.count('CTERelationDef')
            else ['a WITH that is read several times']
    ) %}
{% endmacro %}
