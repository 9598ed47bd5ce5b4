{% macro _c_key(features) %}
    {%- do return(dbt_history._all_prefixed(features.key)) -%}
{% endmacro %}


{% macro _same_feature(features, writes, key=none) %}
    {%- set terms = [] -%}
    {%- for name in key or features.key -%}
        {%- do terms.append(
            'stored.' ~ dbt_history._quote(name) ~ ' = ' ~ writes ~ '.'
                ~ dbt_history._prefixed(name)
        ) -%}
    {%- endfor -%}
    {%- do return(terms | join(' and ')) -%}
{% endmacro %}


{#
    A row of the table of states in the form of the fold; a purge after `after` is ignored. `fork`:
    that of its branch, where the fold asks for it.
#}
{% macro _stored_state(features, pending, fork=none) %}
    {%- set xyz = 'stored.' ~ dbt_history._quote(features.namespace) -%}
    {%- set parts = [] -%}
    {%- for name in dbt_history._state_fields(features) -%}
        {%- if name == 'seq' -%} {%- do parts.append("'seq', stored.`i`") -%}
        {%- elif name == 'purged_txn' -%}
            {%- do parts.append(
                "'purged_txn', if(stored.`purged_txn` <= " ~ pending.after
                    ~ 'L, stored.`purged_txn`, null)'
            ) -%}
        {%- elif name == 'fork' -%} {%- do parts.append("'fork', " ~ (fork or 'null')) -%}
        {%- elif name in ['i', 'txn', 'author_txn', 'created_txn', 'resync', 'branch'] -%}
            {%- do parts.append("'" ~ name ~ "', stored.`" ~ name ~ '`') -%}
        {%- else -%}
            {%- do parts.append(
                "'" ~ name ~ "', " ~ xyz ~ '.`' ~ ('txn' if name == 'txn_uuid' else name) ~ '`'
            ) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(
        'cast(named_struct(' ~ parts | join(', ') ~ ", 'content', "
            ~ dbt_history._stored_content(features) ~ ') as ' ~ features.state_type ~ ')'
    ) -%}
{% endmacro %}


{# The content of a stored state; NULL in columns that the log has and the table does not yet. #}
{% macro _stored_content(features) %}
    {%- set values = [] -%}
    {%- for name in features.payload -%}
        {%- set type = features.payload_types[loop.index0] -%}
        {%- set stored = features.stored_types.get(name | lower) -%}
        {%- do values.append(
            dbt_history._converted('stored.' ~ dbt_history._quote(name), stored, type)
                if stored else 'cast(null as ' ~ dbt_history._ddl_type(type) ~ ')'
        ) -%}
    {%- endfor -%}
    {%- do return(dbt_history._as_content(features, values)) -%}
{% endmacro %}
