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
    that it continues has that model's batches. A model that has got `versions` is taken to continue
    the one without, unless a node of the project has that table. Of a former alias or schema
    nothing is known.
#}
{% macro _refuse_left_table(existing, settings, caller_name) %}
    {% if existing is not none %}{% do return(none) %}{% endif %}
    {% set implied = dbt_history._id_without_version(settings) %}
    {% set continued = settings.get('continues', []) + implied %}
    {% for former in continued %}
        {% set left = load_relation(this.incorporate(
            path={'identifier': former.split('.')[2:] | join('_')},
        )) %}
        {% if left is not none and not left.is_view
            and dbt_history._format_problem(left) is none
            and dbt_history._commit_log(left, former).owner in continued %}
            {% do exceptions.raise_compiler_error(dbt_history._message(
                caller_name,
                'the table of the model that this one continues has another name, and a new'
                    ~ ' history would begin; nothing was written',
                got='no table ' ~ this ~ ', and ' ~ left ~ ' of ' ~ former,
                expected='the table that the model continues, under its own name',
                node=model.unique_id,
                way_out=('set meta.history.continues: ' ~ former ~ ', and ' if former in implied
                        else '')
                    ~ 'alter table ' ~ dbt_history._quoted_relation(left) ~ ' rename to '
                    ~ dbt_history._quoted_relation(this) ~ '; or keep its name with alias: '
                    ~ left.identifier ~ '; or, for a new history beside it, '
                    ~ ('give the table another name' if former in implied
                        else 'remove meta.history.continues'),
            )) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{#
    The id that a model with a version had before it had one, as a list; empty if it has none, names
    it itself, or a node of the project has the table of that name.

        model.shop.customers.v1    model.shop.customers
#}
{% macro _id_without_version(settings) %}
    {% set former = model.unique_id.split('.')[:3] | join('.') %}
    {% if model.get('version') is none or former in settings.get('continues', []) %}
        {% do return([]) %}
    {% endif %}
    {% for node in graph.nodes.values()
        if node.get('alias') == model.name and node.get('schema') == model.schema %}
        {% do return([]) %}
    {% endfor %}
    {% do return([former]) %}
{% endmacro %}


{#
    From version 1.12 on dbt makes a view that shows the latest version of a model, after its run,
    and drops a table that has the view's name. With the name of the model that is the table which
    it had before it got versions, or that of another version with this alias.
#}
{% macro _refuse_taken_pointer(caller_name) %}
    {% set config = model.config.get('latest_version_pointer') or {} %}
    {% set is_on = config.get('enabled') %}
    {% if is_on is none %}
        {% set is_on = invocation_args_dict.get('latest_version_pointer_enabled_by_default') %}
    {% endif %}
    {% if model.get('version') is none or model.version != model.get('latest_version')
        or not is_on %}
        {% do return(none) %}
    {% endif %}
    {% set name = config.get('alias') or model.name %}
    {% if generate_latest_version_pointer_alias is defined %}
        {% set name = generate_latest_version_pointer_alias(config.get('alias'), model) | trim %}
    {% endif %}
    {% set there = load_relation(this.incorporate(path={'identifier': name})) %}
    {% if there is not none and not there.is_view and name | lower != this.identifier | lower %}
        {% do exceptions.raise_compiler_error(dbt_history._message(
            caller_name,
            'dbt would drop a table for the view that shows the latest version; nothing was'
                ~ ' written',
            got='latest_version_pointer, and a table ' ~ there,
            expected='no table of that name', node=model.unique_id,
            way_out='set latest_version_pointer: {enabled: false}, or {alias: <another name>};'
                ~ ' or give the table another name: alter table '
                ~ dbt_history._quoted_relation(there) ~ ' rename to …, which is the alias of a'
                ~ ' version that continues it',
        )) %}
    {% endif %}
{% endmacro %}
