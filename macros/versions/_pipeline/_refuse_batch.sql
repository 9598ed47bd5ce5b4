{#
    An empty or half-loaded feed must not close the world: refuses a batch after which more than `max_deleted_share` of the current
    records have no current version. Counted exactly only where a cheap look shows that the share could be reached at all.
#}
{% macro _refuse_mass_deletion(target, staged, columns, settings, plan, caller_name) %}
    {% set share = settings.max_deleted_share %}
    {% if share is none or plan.rows < 100 or not plan.deleting %}
        {% do return(none) %}
    {% endif %}
    {% set open_rows = 'select 1 from ' ~ dbt_history._quoted_relation(target) ~ ' where ' ~ dbt_history._is_open(settings.convention) %}
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
        group by {% for name in settings.key %}{{ dbt_history._prefixed(name) }}{{ ', ' if not loop.last }}{% endfor %}
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
            {%- for name in settings.key %}, {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }}{% endfor %}))
        from resolved
        where op = 'skip'
    {% endset %}
    {% do return(run_query(sql).rows | map(attribute=0) | list if plan.updates else []) %}
{% endmacro %}


{#
    `version_order: increasing`: what readers have seen before the table's current version stays as it is.

        current version 5        axis    1    3    5    7
        batch with a number      refused if it names a point before 5, also if it would change nothing: its number would count as taken
        rows without a number    all of them come on every run: refused only if what holds before 5 would change
#}
{% macro _refuse_earlier_version(target, staged, columns, settings, plan, caller_name) %}
    {% if settings.get('version_order') != 'increasing' or plan.get('min_effective_at') is none %}
        {% do return(none) %}
    {% endif %}
    {% set convention = settings.convention %}
    {% set current = run_query(
        'select ' ~ dbt_history._axis_number('version', convention) ~ ' from ' ~ dbt_history.current_version(target, convention) ~ ' as found'
    ).rows[0][0] %}
    {% if current is none or (plan.min_effective_at | int) >= (current | int) %}
        {% do return(none) %}
    {% endif %}
    {% set point = dbt_history._first_change(target, staged, columns, settings, plan, current) if plan.batch is none else plan.min_effective_at %}
    {% if point is not none and not dbt_history._is_taken(target, plan) %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name, 'the batch is at a version before the current one; nothing of it was written',
            got=dbt_history._axis_text(point, convention),
            expected=dbt_history._axis_text(current, convention) ~ ' or later (meta.history.version_order: increasing)',
            node=model.unique_id,
            way_out='leave out the rows before the current version, or set version_order: any if they may change what has been read',
        )) %}
    {% endif %}
{% endmacro %}


{# Whether another run has applied the batch meanwhile: then it is what made the current version. #}
{% macro _is_taken(target, plan) %}
    {% if plan.batch is none %}
        {% do return(false) %}
    {% endif %}
    {% set last_batch = dbt_history._commit_log(target, model.unique_id).last_batch %}
    {% do return(last_batch is not none and last_batch >= plan.batch) %}
{% endmacro %}


{# The first point before the current version at which the batch would change the table, as a number of the axis; none if there is none. #}
{% macro _first_change(target, staged, columns, settings, plan, current) %}
    {% set convention = settings.convention %}
    {% set now = dbt_history._literal(dbt_history._axis_value(current | int, convention), convention) %}
    {% set sql %}
        with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(8) }},

        changed as (
            select if(op = 'close', {{ dbt_history._shift_by_gap('earlier_end', convention, '+') }}, at) as point
            from resolved
            where (op in ('add', 'replace', 'remove') and at < {{ now }})
                or (op = 'close' and earlier_end < {{ dbt_history._shift_by_gap(now, convention) }})
        )

        select {{ dbt_history._axis_number('min(point)', convention) }} from changed
    {% endset %}
    {% do return(run_query(sql).rows[0][0]) %}
{% endmacro %}
