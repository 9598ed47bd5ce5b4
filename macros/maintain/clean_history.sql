{#
    Removes versions that ended long ago. The greatest end among them is recorded as the table's
    retention horizon: a reader that asks for an earlier point fails with a message. From the
    horizon on every reader returns the same rows as before.

        cutoff                                            |
        a  [-----)                removed                 |
        b     [---------)         removed, its end is     |
        c          [------------------------------------------- kept, like every version that ends
                        ^ the horizon                           at the cutoff or later

    dbt run-operation clean_history --args '{table: customers, before: "2024-01-01"}'

    One or more of: `before` (a time, a version, a tag), `age` ('90 days'), `keep_versions` (the
    number of newest versions to keep per record); a version is removed only if all the given limits
    allow it. Open versions are always kept, and so are versions in force at the instant of a tag,
    those that `keep_referenced` refers to and, without `before` or `age`, those that end in the
    future. `dry_run` counts and writes nothing.

    For feature states also `up_to`, a transaction, and `keep_transactions`, the number of last
    transactions to keep (of the log `transactions` with their numbers; without it txn is the
    number). States closed up to that point are removed, and the horizon is the point itself. With
    `age` or `keep_transactions` the point is at most the oldest tag. The tombstone of a deleted
    feature is kept.

        keep_transactions: 3     1   2   3   4  |5   6   7      the horizon is head - 3 + 1
#}
{% macro clean_history(
    table, before=none, age=none, keep_versions=none, keep_referenced=[], dry_run=false,
    convention=none, key=none, author=none, reason=none, up_to=none, keep_transactions=none,
    transactions=none
) %}
    {% set tables = dbt_history._maintained(table, convention, key, 'clean_history') %}
    {% for table in tables %}{% do dbt_history._find_namespace(table) %}{% endfor %}
    {% set of_features = {
        'up_to': up_to, 'keep_transactions': keep_transactions, 'transactions': transactions,
        'age': age,
    } %}
    {% do dbt_history._check_cutoff(tables, before, age, keep_versions, of_features) %}
    {% set limits = {
        'before': before, 'age': age, 'keep_versions': keep_versions,
        'keep_referenced': keep_referenced,
    } %}
    {% for table in tables %}
        {% set cutoff = dbt_history._cutoff(table, before, none if table.namespace else age) %}
        {% do table.update({'limit': dict(
            limits, cutoff=cutoff, last=dbt_history._last_to_clean(table, of_features),
        )}) %}
    {% endfor %}
    {% set results = {} %}
    {% for table in tables %}
        {% set limit = table.limit %}
        {% set plan = dbt_history._plan_cleaning(table, limit) %}
        {% if plan.retention_horizon is not none and not dry_run %}
            {#
                The horizon is published before any version is removed, and the tags are reread
                after that: one created meanwhile is respected.
            #}
            {% do dbt_history._add_mark(
                table, 'horizon', instant=plan.retention_horizon, author=author, reason=reason,
            ) %}
            {% do dbt_history._remove_versions(table, limit, plan) %}
        {% endif %}
        {% do results.update({table.name: plan}) %}
        {% do log(
            'dbt_history: ' ~ table.name ~ ': ' ~ plan.dropped ~ ' of ' ~ plan.versions
                ~ ' versions '
            ~ ('would be dropped' if dry_run else 'dropped')
                ~ (
                    ', horizon ' ~ plan.retention_horizon if plan.retention_horizon is not none
                        else ''
                )
            ~ (', kept for tags: ' ~ plan.tags if plan.tags else ''), info=true
        ) %}
    {% endfor %}
    {% do return(results) %}
{% endmacro %}
