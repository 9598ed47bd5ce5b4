{#
    Why a statement failed, and the way out, as texts: [reason, way out]. `failed`: the class that
    `_guarded_statement` returned. `action`: what the statement does, as a noun. `again`: what to do
    after the cause is removed. `own`: the pairs of a caller, by class, which come first.
#}
{% macro _failure_reason(failed, action, again, own={}) %}
    {% set reasons = dict({
        'conflict': ['other writers changed the table six times during the ' ~ action, again],
        'constraint': [
            'a row violates a constraint of the table',
            'correct the row, or the constraint (show tblproperties lists it)',
        ],
        'too long': ['a text is too long for its column (varchar or char)', 'shorten the text'],
    }, **own) %}
    {% do return(reasons.get(failed, [
        'Spark could not finish the ' ~ action,
        'the cause is in the log of the Spark driver; correct it and ' ~ again,
    ])) %}
{% endmacro %}
