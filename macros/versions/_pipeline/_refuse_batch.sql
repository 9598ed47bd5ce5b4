{#
    Refuses a batch after which more than `max_deleted_share` of the current records have no current
    version, as an empty or incomplete feed would cause. They are counted only if a limited count of
    current records shows that the share could be exceeded.
#}
{% macro _refuse_mass_deletion(batch) %}
    {% set plan, settings = batch.plan, batch.settings %}
    {% set share = settings.max_deleted_share %}
    {% if share is none or plan.rows < 100 or not plan.deleting %}
        {% do return(none) %}
    {% endif %}
    {% set enough = ((plan.deleting / share) | round(0, 'ceil') | int) if share else none %}
    {% if enough is not none %}
        {% set current = dbt_history._count_open(batch, enough) %}
        {% if current >= enough or not current %}
            {% do return(none) %}
        {% endif %}
    {% endif %}
    {% set counts = run_query(dbt_history._lost_records_sql(batch)).rows[0] %}
    {% set lost, current = counts[0] | int, counts[1] | int %}
    {% if dbt_history._is_more_than(lost, share, current) %}
        {% do dbt_history._drop_staged(batch.staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            batch.caller_name,
            dbt_history._plan_name(plan)
                ~ ' would leave too many records without a current version; none of it was'
                ~ ' written',
            got=lost ~ ' of ' ~ current ~ ' current records',
            expected='at most a share of ' ~ share ~ ' (meta.history.max_deleted_share)',
            node=model.unique_id,
            way_out='check that the feed is complete; if the records were really deleted, raise'
                ~ ' max_deleted_share for this run' ~ dbt_history._way_back(batch),
        )) %}
    {% endif %}
{% endmacro %}


{#
    Whether `lost` is more than a share of `current`. A quotient is rounded as the literal of the
    share is: 29 / 100 equals 0.29, but 0.29 * 100 is 28.999999999999996.
#}
{% macro _is_more_than(lost, share, current) %}
    {% do return(current > 0 and lost / current > share) %}
{% endmacro %}


{% macro _open_rows_sql(batch) %}
    {% do return(
        'select 1 from ' ~ dbt_history._quoted_relation(batch.target) ~ ' where '
            ~ dbt_history._is_open(batch.settings.convention)
    ) %}
{% endmacro %}


{# How many current records the table has, counted up to `enough`. #}
{% macro _count_open(batch, enough) %}
    {% do return(run_query(
        'select count(*) from (' ~ dbt_history._open_rows_sql(batch) ~ ' limit ' ~ enough
            ~ ') as some'
    ).rows[0][0] | int) %}
{% endmacro %}


{#
    Whether a batch of a plan of several might exceed the share. Each batch deletes at most the
    records that it ends, and at least the table's current records minus those that earlier batches
    end are current before it.
#}
{% macro _may_delete_too_many(batch) %}
    {% set share = batch.settings.max_deleted_share %}
    {% set need = namespace(rows=0, ended=0, is_checked=false) %}
    {% for part in batch.plan.parts if share is not none %}
        {% if part.rows >= 100 and part.deleting %}
            {% set need.is_checked = true %}
            {% set need.rows = [
                need.rows,
                (part.deleting / share + need.ended) | round(0, 'ceil') | int if share else 0,
            ] | max %}
        {% endif %}
        {% set need.ended = need.ended + part.deleting %}
    {% endfor %}
    {% do return(
        need.is_checked and (not share or dbt_history._count_open(batch, need.rows) < need.rows)
    ) %}
{% endmacro %}


{% macro _lost_records_sql(batch) %}
    with {{ dbt_history._resolved(batch) | indent(4) }},

    records as (
        select max(was_open) and not max(is_open) as is_lost
        from resolved
        group by {{ dbt_history._all_prefixed(batch.settings.key) | join(', ') }}
    )

    select
        (select count_if(is_lost) from records) as lost,
        (
            select count(*) from ({{ dbt_history._open_rows_sql(batch) }}) as open_rows
        ) as current_records
{%- endmacro %}


{# How many update rows of a plan have no base version. #}
{% macro _count_without_base(batch) %}
    {% if not batch.plan.updates %}{% do return(0) %}{% endif %}
    {% set sql %}
        with {{ dbt_history._resolved(batch) | indent(8) }}

        select count(*) from resolved where op = 'skip'
    {% endset %}
    {% do return(run_query(sql).rows[0][0] | int) %}
{% endmacro %}


{# Some of these rows, as JSON of start and key. #}
{% macro _rows_without_base(batch) %}
    {% set sql %}
        with {{ dbt_history._resolved(batch) | indent(8) }}

        select to_json(struct(at as {{ dbt_history._quote(batch.settings.convention.start) }}
            {%- for name in batch.settings.key %},
            {{ dbt_history._prefixed(name) }} as {{ dbt_history._quote(name) }}
            {%- endfor %}
        ))
        from resolved
        where op = 'skip'
        limit 5
    {% endset %}
    {% do return(run_query(sql).rows | map(attribute=0) | list) %}
{% endmacro %}


{# The number that `update_without_base: fail` refuses; `skip` and `insert` need no query. #}
{% macro _count_without_required_base(batch) %}
    {% do return(
        dbt_history._count_without_base(batch) if batch.settings.update_without_base == 'fail'
            else 0
    ) %}
{% endmacro %}


{% macro _refuse_rows_without_base(batch) %}
    {% set number = dbt_history._count_without_required_base(batch) %}
    {% if number %}
        {% set rows = dbt_history._rows_without_base(batch) %}
        {% do dbt_history._drop_staged(batch.staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            batch.caller_name,
            'update rows have no version to be completed from; nothing of this batch was written',
            got=number ~ ' rows\n    ' ~ rows | join('\n    '),
            expected='a version that lasts until the update (meta.history.update_without_base:'
                ~ ' fail)',
            node=model.unique_id,
            way_out='send the missing versions as upsert rows, or set update_without_base to skip'
                ~ ' or insert' ~ dbt_history._way_back(batch),
        )) %}
    {% endif %}
{% endmacro %}


{#
    A full refresh replaces the table by an empty one. What would refuse its first commit, to an
    empty table, is found before; update rows without a base are the only thing.
#}
{% macro _refuse_first_commit(batch, batches) %}
    {% if batch.settings.update_without_base == 'fail' and batches %}
        {% set plans = dbt_history._plan_commits(
            batch.staged, batch.columns, batch.settings, batches,
        ) %}
        {% do dbt_history._refuse_rows_without_base(dict(batch, plan=plans[0], rendered={})) %}
    {% endif %}
{% endmacro %}


{#
    After a refusal of a later commit of a full refresh: how to bring back the rows of the former
    table. `former`: its version; none if the run replaced no table, or one that it cannot name.
#}
{% macro _way_back(batch) %}
    {% do return(
        '; the full refresh has replaced the table, and this statement brings back the rows that'
            ~ ' it had before (if a full refresh before this one was refused, too, take the version'
            ~ ' before that one, see describe history): restore table '
            ~ dbt_history._quoted_relation(batch.target)
            ~ ' to version as of ' ~ batch.former
            if batch.get('former') is not none else ''
    ) %}
{% endmacro %}


{#
    `version_order: increasing`: a batch must not change the table before its current version.

        current version 5        axis    1    3    5    7
        numbered batch      refused if a row has a point before 5, even if it would change nothing,
                            because its number would be recorded as applied
        unnumbered rows     may be sent again on every run: refused only if they would change
                            something before 5

    The point of a delete row is the first instant without its record: one gap after its end.

    The retention horizon counts too, except in the run that makes the table or replaces it: it is
    the horizon of the former one, below which the first batches are applied again.
#}
{% macro _refuse_earlier_version(batch) %}
    {% set target, plan, settings = batch.target, batch.plan, batch.settings %}
    {% set first = plan.get('first_point', plan.get('min_effective_at')) %}
    {% if settings.get('version_order') != 'increasing' or first is none %}
        {% do return(none) %}
    {% endif %}
    {% set convention = settings.convention %}
    {% set current = dbt_history._current_version_after(
        target, convention, first | int, counts_horizon=not batch.get('begins_empty'),
    ) %}
    {% if current is none %}
        {% do return(none) %}
    {% endif %}
    {% set point = dbt_history._first_change(batch, current) if plan.batch is none else first %}
    {% if point is not none and not dbt_history._is_taken(target, plan) %}
        {% do dbt_history._drop_staged(batch.staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            batch.caller_name,
            'the batch has a row before the current version; nothing of the batch was written',
            got=dbt_history._axis_text(point, convention),
            expected=dbt_history._axis_text(current, convention)
                ~ ' or later (meta.history.version_order: increasing)',
            node=model.unique_id,
            way_out='omit the rows before the current version, or set version_order: any if they'
                ~ ' may change versions that may have been read' ~ dbt_history._way_back(batch),
        )) %}
    {% endif %}
{% endmacro %}


{#
    The current version of a table as a number of its axis, if it is after `point`; else none. Only
    rows that start or end after it are read, so that Delta skips the other files.

        point 5       axis    1    3    5    7
        read                  [ a -----------)       an end after 5
                                        [ b ---      a start after 5; c and d are not read
                              [ c ------)
                                   [ d ---------
#}
{% macro _current_version_after(target, convention, point, counts_horizon) %}
    {% set start, end = dbt_history._quoted([convention.start, convention.end]) %}
    {% set bound = dbt_history._literal(
        dbt_history._axis_value(point, convention), convention,
    ) | trim %}
    {% set first_open_end = dbt_history._first_open_end(convention) %}
    {% set later = '(select ' ~ start ~ ', ' ~ end ~ ' from '
        ~ dbt_history._quoted_relation(target) ~ ' where ' ~ start ~ ' > ' ~ bound ~ ' or ('
        ~ end ~ ' > ' ~ dbt_history._shift_by_gap(bound, convention)
        ~ (' and ' ~ end ~ ' < ' ~ first_open_end if first_open_end is not none else '') ~ '))' %}
    {% set version = run_query(
        'select ' ~ dbt_history._axis_number('version', convention) ~ ' from '
            ~ dbt_history._current_version_sql(
                later, target if counts_horizon else none, convention,
                'cast(null as ' ~ convention.type ~ ')',
            ) ~ ' as found'
    ).rows[0][0] %}
    {% do return(version | int if version is not none and version | int > point else none) %}
{% endmacro %}


{# Whether another run has applied the batch meanwhile and so made the current version. #}
{% macro _is_taken(target, plan) %}
    {% if plan.batch is none %}
        {% do return(false) %}
    {% endif %}
    {% set last_batch = dbt_history._commit_log(target, model.unique_id).last_batch %}
    {% do return(last_batch is not none and last_batch >= plan.batch) %}
{% endmacro %}


{#
    The first point before the current version at which the batch would change the table, as a
    number of the axis; none if there is none.
#}
{% macro _first_change(batch, current) %}
    {% set convention = batch.settings.convention %}
    {% set now = dbt_history._literal(
        dbt_history._axis_value(current | int, convention), convention,
    ) %}
    {% set sql %}
        with {{ dbt_history._resolved(batch) | indent(8) }},

        changed as (
            select
                if(
                    op = 'close',
                    {{ dbt_history._shift_by_gap('earlier_end', convention, '+') }},
                    at
                ) as point
            from resolved
            where (op in ('add', 'replace', 'remove') and at < {{ now }})
                or (op = 'close' and earlier_end < {{ dbt_history._shift_by_gap(now, convention) }})
        )

        select {{ dbt_history._axis_number('min(point)', convention) }} from changed
    {% endset %}
    {% do return(run_query(sql).rows[0][0]) %}
{% endmacro %}


{#
    Refuses rows that send a version again without fields of structs in an array or a map, if the
    version has values in them: it is not known which struct they would belong to.
#}
{% macro _refuse_lost_fields(target, staged, columns, settings, caller_name) %}
    {% set convention, names, terms = settings.convention, [], [] %}
    {% set stored = {} %}
    {% for column in dbt_history._table_columns(target) %}
        {% do stored.update({column.name: column.type}) %}
    {% endfor %}
    {% for column in columns if column.name in staged.said and column.name in stored %}
        {% set known = dbt_history._converted(
            'stored.' ~ dbt_history._quote(column.name), stored[column.name], column.type,
        ) %}
        {% set is_lost = dbt_history._loses_fields(
            'sent.' ~ dbt_history._prefixed(column.name), known, column.type,
            staged.said[column.name],
        ) %}
        {% if is_lost is not none %}
            {% do names.append(column.name) %}
            {% do terms.append(is_lost) %}
        {% endif %}
    {% endfor %}
    {% if not terms %}
        {% do return(none) %}
    {% endif %}
    {% set kinds, on, sample = dbt_history._row_kinds(), [], [] %}
    {% for name in settings.key + dbt_history._identity_columns(convention) %}
        {% set cell = 'stored.' ~ dbt_history._quote(name) %}
        {% do on.append(cell ~ ' = sent.' ~ dbt_history._prefixed(name)) %}
        {% do sample.append(cell) %}
    {% endfor %}
    {% set rows = run_query(
        'select to_json(struct(' ~ sample | join(', ') ~ ')) from ('
            ~ dbt_history._batch_rows(staged, columns, settings) ~ ') as sent inner join '
            ~ dbt_history._quoted_relation(target) ~ ' as stored on ' ~ on | join(' and ')
            ~ ' where sent.kind in (' ~ kinds.upsert_row ~ ', ' ~ kinds.update_row ~ ') and ('
            ~ terms | join(' or ') ~ ') limit 5'
    ).rows %}
    {% if rows %}
        {% do dbt_history._drop_staged(staged) %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'versions that the table has are sent again without fields of the structs in an array'
                ~ ' or a map, whose values would be lost; nothing was written',
            got='column ' ~ names | join(', ') ~ ' of\n    '
                ~ rows | map(attribute=0) | join('\n    '),
            expected='all fields that the table has',
            node=model.unique_id,
            way_out='select the fields again, or leave out the versions that the table has; with'
                ~ ' NULL in place of a field its values are given up',
        )) %}
    {% endif %}
{% endmacro %}
