{#
    Copies a table without history to a new history table, in one commit; the table itself is
    unchanged. Rows become versions as in `soft_delete_to_history`; without `deleted_column` all of
    them are active.
#}
{% macro copy_table_to_history_mode(
    table, to, deleted_column=none, least='0001-01-01T00:00:00Z', dry_run=false
) %}
    {% set caller = 'copy_table_to_history_mode' %}
    {% set migrated = dbt_history._migrated_table(table, caller) %}
    {% set wanted = dbt_history._named_relation(to, caller) %}
    {% set existing = adapter.get_relation(
        database=wanted.database, schema=wanted.schema, identifier=wanted.identifier,
    ) %}
    {% set problems = [] %}
    {% set instant = dbt_history._migration_instant(least, 'least', problems) %}
    {# A later table with this name has another id: a copy of it is another migration. #}
    {% set detail = run_query(
        'describe detail ' ~ dbt_history._quoted_relation(migrated.relation)
    ).rows[0] %}
    {% set operation = {
        'operation': caller, 'from': migrated.relation | string, 'from_id': detail['id'],
        'deleted_column': (deleted_column or '') | lower, 'least': instant,
    } %}
    {% if existing is not none and existing.is_delta and not problems
        and dbt_history._is_migrated(existing, operation, caller) %}
        {% do return(none) %}
    {% endif %}
    {% if existing is not none %}
        {% do problems.append(to ~ ' exists already and is not a copy made by this migration') %}
    {% endif %}
    {% do dbt_history._refuse_migration(
        problems + dbt_history._soft_delete_problems(migrated, deleted_column), migrated, caller,
    ) %}
    {% if not dry_run %}
        {% set history = dbt_history._as_history(migrated, deleted_column, instant) %}
        {% do dbt_history._make_copy(wanted, migrated, history, operation, caller) %}
    {% endif %}
    {% do dbt_history._log_info(
        caller, wanted,
        ('would be' if dry_run else 'is') ~ ' a copy in history mode of ' ~ migrated.relation,
    ) %}
{% endmacro %}
