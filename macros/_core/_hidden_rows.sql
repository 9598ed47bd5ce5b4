{#
    The option of dbt that hides rows of the sources, or none: --empty hides all of them, --sample
    those of other times.
#}
{% macro _hiding_option() %}
    {% do return(
        '--empty' if invocation_args_dict.get('empty')
            else '--sample' if invocation_args_dict.get('sample') else none
    ) %}
{% endmacro %}


{#
    Whether a run must not commit rows, because the hidden ones would count as applied. A sample of
    them is refused.

        staged       batch 5, three days old      batch 6, today
        --empty      hidden                       hidden            nothing is committed
        --sample     hidden                       applied           the next run would begin after 6

    `is_recorded`: the commit would record the number of a batch, or how far a source was read.
#}
{% macro _commits_nothing(is_recorded, staged, caller_name) %}
    {% set option = dbt_history._hiding_option() if is_recorded else none %}
    {% if option == '--sample' %}
        {% do dbt_history._drop_staged(staged) %}
        {% do dbt_history._refuse_sample(
            caller_name, 'batches without them would count as applied',
            got='a SELECT with _batch, or with rows of changes', expected='all rows of a batch',
        ) %}
    {% endif %}
    {% do return(option is not none) %}
{% endmacro %}


{% macro _refuse_sample(caller_name, problem, got, expected) %}
    {% do exceptions.raise_compiler_error(dbt_history._message(
        caller_name, '--sample hides rows, and ' ~ problem ~ '; nothing was written', got=got,
        expected=expected, node=model.unique_id,
        way_out='run dbt without --sample, or with --exclude ' ~ model.name
            ~ ' (with --empty the table is created, and nothing counts as applied)',
    )) %}
{% endmacro %}
