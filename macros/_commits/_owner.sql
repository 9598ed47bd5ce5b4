{#
    Every batch records its unique key. With another key a row would find no version of its record,
    or versions of several records.
#}
{% macro _refuse_other_key(known, key, staged, caller_name) %}
    {% if not known or known | map('lower') | sort | list == key | map('lower') | sort | list %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._drop_staged(staged) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, 'the table was written with another unique_key; nothing was written',
        got=key | join(', ') or 'no unique_key', expected=known | join(', '), node=model.unique_id,
        way_out='use the same key as before; for a history by another key give the model another'
            ~ ' alias, or run it once with --full-refresh and '
            ~ 'meta.history.allow_full_refresh: true, if the SELECT still returns all rows since'
                ~ ' the first batch',
    )) %}
{% endmacro %}


{#
    Batch numbers belong to a model: batches of another model with the same numbers would count as
    applied. So another model is refused, unless its batches have no numbers (`numbers` is false) or
    its setting `continues` names the owner.
#}
{% macro _refuse_other_owner(log, settings, numbers, staged, caller_name) %}
    {% if log.get('owner') in [none, model.unique_id] + settings.get('continues', [])
        or not numbers %}
        {% do return(none) %}
    {% endif %}
    {% do dbt_history._drop_staged(staged) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name,
        'the table holds the batches of another model, whose numbers would count as those of this'
            ~ ' one; nothing was written',
        got='last batch ' ~ log.last_batch ~ ' of ' ~ log.owner,
        expected='a table of its own for each model that numbers its batches', node=model.unique_id,
        way_out='give one of the models another alias or schema; if this is the same model under a'
            ~ ' new name, set meta.history.continues: '
        ~ log.owner ~ ' (its numbers then go on)',
    )) %}
{% endmacro %}


{#
    dbt looks for the table of a renamed model under the new name, and would begin a new history
    beside the one that the model continues:

        customer_history    1   2   3         of model.shop.customer_history, which is gone
        client_history                1   2   `continues` it, in a table of its own

    So a model is refused as long as its own table is missing and a table with the name of a model
    that it continues has that model's batches. Of a former alias or schema nothing is known.
#}
{% macro _refuse_left_table(existing, settings, caller_name) %}
    {% if existing is not none %}{% do return(none) %}{% endif %}
    {% for former in settings.get('continues', []) %}
        {% set left = load_relation(this.incorporate(
            path={'identifier': former.split('.')[2:] | join('_')},
        )) %}
        {% if left is not none and not left.is_view
            and dbt_history._format_problem(left) is none
            and dbt_history._commit_log(left, former).owner in settings.continues %}
            {% do exceptions.raise_compiler_error(dbt_history._message(
                caller_name,
                'the table of the model that this one continues has another name, and a new'
                    ~ ' history would begin; nothing was written',
                got='no table ' ~ this ~ ', and ' ~ left ~ ' of ' ~ former,
                expected='the table that the model continues, under its own name',
                node=model.unique_id,
                way_out='alter table ' ~ dbt_history._quoted_relation(left) ~ ' rename to '
                    ~ dbt_history._quoted_relation(this) ~ '; or keep its name with alias: '
                    ~ left.identifier
                    ~ '; or, for a new history beside it, remove meta.history.continues',
            )) %}
        {% endif %}
    {% endfor %}
{% endmacro %}
