{#
    An empty or half-loaded feed must not close the world: refuses a batch after which more than `max_deleted_share` of the current
    records have no current version. Counted exactly only where a cheap look shows that the share could be reached at all.
#}
{% macro _refuse_mass_deletion(target, staged, columns, settings, plan, caller_name) %}
    {% set share = settings.max_deleted_share %}
    {% if share is none or plan.rows < 100 or not plan.deleting %}
        {% do return(none) %}
    {% endif %}
    {% set open_rows = 'select 1 from ' ~ dbt_history._full_name(target) ~ ' where ' ~ dbt_history._is_open(settings.convention) %}
    {% set enough = ((plan.deleting / share) | round(0, 'ceil') | int) if share else none %}
    {% if enough is not none %}
        {% set current = run_query('select count(*) from (' ~ open_rows ~ ' limit ' ~ enough ~ ') as some').rows[0][0] | int %}
        {% if current >= enough or not current %}
            {% do return(none) %}
        {% endif %}
    {% endif %}
    {% set counts = run_query(dbt_history._lost_records_sql(target, staged, columns, settings, plan, open_rows)).rows[0] %}
    {% set lost, current = counts[0] | int, counts[1] | int %}
    {% if lost > share * current %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'batch ' ~ (plan.batch if plan.batch is not none else 'without a number') ~ ' would leave too many records without a current version; nothing of it was written',
            got=lost ~ ' of ' ~ current ~ ' current records',
            expected='at most a share of ' ~ share ~ ' (meta.history.max_deleted_share)',
            node=model.unique_id,
            way_out='check that the feed is complete; if the records are really gone, raise max_deleted_share for this run',
        )) %}
    {% endif %}
{% endmacro %}


{% macro _lost_records_sql(target, staged, columns, settings, plan, open_rows) %}
    with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(4) }},

    records as (
        select max(was_open) and not max(is_open) as is_lost
        from resolved
        group by {% for name in settings.key %}{{ dbt_history._c(name) }}{{ ', ' if not loop.last }}{% endfor %}
    )

    select
        (select count_if(is_lost) from records) as lost,
        (select count(*) from ({{ open_rows }}) as open_rows) as current_records
{%- endmacro %}


{# The update rows of a batch that find nothing to complete them, as JSON of start and key. #}
{% macro _rows_without_base(target, staged, columns, settings, plan) %}
    {% set sql %}
        with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(8) }}

        select to_json(struct(at as {{ dbt_history._quote(settings.convention.start) }}
            {%- for name in settings.key %}, {{ dbt_history._c(name) }} as {{ dbt_history._quote(name) }}{% endfor %}))
        from resolved
        where op = 'skip'
    {% endset %}
    {% do return(run_query(sql).rows | map(attribute=0) | list if plan.updates else []) %}
{% endmacro %}
