{#
    The one place that knows what a table's format changes. Whatever differs is a pair of macros, `_delta_…` and `_iceberg_…`,
    behind one of these; all else is the same SQL for both. docs/iceberg.md lists the differences.
#}
{% macro _format(relation) %}
    {% do return('iceberg' if relation.is_iceberg else 'delta') %}
{% endmacro %}


{# The relation to write with its format: that of the table that is there, else the model's `file_format`. #}
{% macro _target(relation, existing) %}
    {% set target = relation.incorporate(type='table') %}
    {% set is_iceberg = existing.is_iceberg if existing is not none else config.get('file_format') == 'iceberg' %}
    {% do return(target.incorporate(is_iceberg=true) if is_iceberg else target) %}
{% endmacro %}


{#
    A relation from dbt's list, marked with its format. What dbt made itself in this run is in the list without it: then the node says it,
    and no query is needed.
#}
{% macro _with_format(relation) %}
    {% if relation is none or relation.is_view or relation.is_iceberg or relation.is_delta %}
        {% do return(relation) %}
    {% endif %}
    {% set made = dbt_history._node_named(relation.schema ~ '.' ~ relation.identifier) %}
    {% set is_iceberg = made is not none and made.config.get('file_format') == 'iceberg' %}
    {% do return(relation.incorporate(is_iceberg=true) if is_iceberg else relation) %}
{% endmacro %}


{# What the table itself remembers of its batches: see the macro of each format. #}
{% macro _commit_log(relation, node_id) %}
    {% do return(dbt_history._iceberg_commit_log(relation) if relation.is_iceberg else dbt_history._delta_commit_log(relation, node_id)) %}
{% endmacro %}


{# The table's commits, newest first; `limit` none for all that it still knows. #}
{% macro _history_entries(relation, limit=none) %}
    {% do return(dbt_history._iceberg_history_entries(relation, limit) if relation.is_iceberg else dbt_history._delta_history_entries(relation, limit)) %}
{% endmacro %}


{# The place that the statement of a batch reads and writes. #}
{% macro _writing_place(target) %}
    {% do return(dbt_history._iceberg_writing_place(target) if target.is_iceberg else target) %}
{% endmacro %}


{#
    One statement, one commit, with the record of `plan` in it. Two runs at once are settled by the table: the loser looks
    again, and either finds the number taken or tries once more on the newer table.
    Returns none, or the class of the failure.
#}
{% macro _commit_once(target, statement, plan, log, before, caller_name) %}
    {% do return(
        dbt_history._iceberg_commit_once(target, statement, plan, log, caller_name) if target.is_iceberg
        else dbt_history._delta_commit_once(target, statement, plan, log, before)
    ) %}
{% endmacro %}


{# After the last commit of a run. #}
{% macro _finish_writes(target, log) %}
    {% do dbt_history._iceberg_finish_writes(target, log) if target.is_iceberg %}
{% endmacro %}


{# The session setting by which a commit carries this record. #}
{% macro _record_setting(relation, record) %}
    {% if relation.is_iceberg %}
        {% do return({dbt_history._snapshot_property(): dbt_history._record_text(dict(record, table=dbt_history._full_name(relation)))}) %}
    {% endif %}
    {% do return({'spark.databricks.delta.commitInfo.userMetadata': dbt_history._record_text(record)}) %}
{% endmacro %}


{# A statement that changes nothing but makes a commit, for a record that is to stand in order with the batches. #}
{% macro _empty_commit_sql(relation, property, value) %}
    {% set name = dbt_history._full_name(relation) %}
    {% if relation.is_iceberg %}
        {% do return('insert into ' ~ name ~ ' select * from ' ~ name ~ ' where false') %}
    {% endif %}
    {% do return('alter table ' ~ name ~ " set tblproperties ('" ~ property ~ "' = '" ~ value ~ "')") %}
{% endmacro %}


{# The properties of a new version table (`is_log` false) or log; the model's own come last. #}
{% macro _properties_of_format(relation, columns, is_log) %}
    {% set properties = dbt_history._iceberg_properties(is_log) if relation.is_iceberg else dbt_history._delta_properties(columns, is_log) %}
    {% do properties.update(config.get('tblproperties') or {}) %}
    {% do return(properties) %}
{% endmacro %}


{# The comment of a table, as the catalog has it. #}
{% macro _table_comment(relation) %}
    {% if relation.is_iceberg %}
        {% do return(dbt_history._table_property(relation, 'comment')) %}
    {% endif %}
    {% do return(run_query('describe detail ' ~ dbt_history._full_name(relation)).rows[0]['description']) %}
{% endmacro %}


{# A property of the table; none if it is not set. #}
{% macro _table_property(relation, name) %}
    {% set found = namespace(value=none) %}
    {% for row in run_query('show tblproperties ' ~ dbt_history._full_name(relation)).rows if row[0] == name %}
        {% set found.value = row[1] | string %}
    {% endfor %}
    {% do return(found.value) %}
{% endmacro %}


{# How many update rows of a batch find no version: Delta counts them in the commit, elsewhere they are counted before it. #}
{% macro _count_skipped(target, staged, columns, settings, plan) %}
    {% if target.is_iceberg and plan.updates %}
        {% set sql %}
            with {{ dbt_history._resolved_ctes(target, staged, columns, settings, plan) | indent(12) }}

            select count(*) from resolved where op = 'skip'
        {% endset %}
        {% do plan.update({'skipped': run_query(sql).rows[0][0] | int}) %}
    {% endif %}
{% endmacro %}


{# A table of a format that keeps no history, or another than the model asks for. Returns the problem, or none. #}
{% macro _format_problem(existing) %}
    {% set wanted = config.get('file_format') %}
    {% if existing is none or existing.is_view %}
        {% do return(none) %}
    {% elif existing.is_iceberg %}
        {% do return('the target is an Iceberg table, and the model says file_format: delta' if wanted == 'delta' else none) %}
    {% elif existing.is_delta is sameas false %}
        {% do return('the target is no Delta table') %}
    {% endif %}
    {% do return('the target is a Delta table, and the model says file_format: iceberg' if wanted == 'iceberg' else none) %}
{% endmacro %}


{# Names that a format keeps for itself: {'problems'} of the SELECT's columns. #}
{% macro _reserved_columns(staged, target) %}
    {% set problems = [] %}
    {% set reserved = ['_file', '_pos', '_deleted', '_spec_id', '_partition', '_row_id', '_last_updated_sequence_number'] %}
    {% for column in staged.columns if target.is_iceberg and column.name | lower in reserved %}
        {% do problems.append('column ' ~ column.name ~ ' has a name that Iceberg keeps for itself') %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Whether a MERGE evaluates its source more than once: an Iceberg table that something else made copies whole files on write, unless it
    says otherwise. Spark then looks the files up by the source first.
#}
{% macro _merge_reads_twice(target) %}
    {% if not target.is_iceberg or load_relation(target) is none %}
        {% do return(false) %}
    {% endif %}
    {% do return(dbt_history._table_property(target, 'write.merge.mode') != 'merge-on-read') %}
{% endmacro %}


{#
    Whether a table of this name, there or not, is one of Iceberg's: it names no catalog, and the session's own is Iceberg's. Then no
    statement of Delta finds or makes it.
#}
{% macro _belongs_to_iceberg(table) %}
    {% if (table | string).split('.') | length > 2 %}
        {% do return(false) %}
    {% endif %}
    {% set key = 'spark.sql.catalog.' ~ run_query('select current_catalog()').rows[0][0] %}
    {% do return((dbt_history._session_settings([key]).get(key) or '').startswith('org.apache.iceberg.')) %}
{% endmacro %}


{# What needs Delta is refused before anything is written; `expected` says what for. #}
{% macro _refuse_iceberg(table, caller_name, expected) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'this is not there for Iceberg tables; nothing was written', got=table ~ ', an Iceberg table', expected=expected,
        way_out='keep this table in Delta (docs/iceberg.md lists what Iceberg tables do not have)',
    )) %}
{% endmacro %}
