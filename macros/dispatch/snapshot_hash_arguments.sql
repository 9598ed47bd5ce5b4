{#
    The hash of a snapshot's version id. The length of each argument is included, so that NULL and
    '' differ, as do ('a|', 'b') and ('a', '|b').
#}
{% macro spark__snapshot_hash_arguments(args) %}
    {%- set parts = [] -%}
    {%- for arg in args -%}
        {%- do parts.append(
            "coalesce(concat(length(cast(" ~ arg ~ " as string)), ':', cast(" ~ arg
                ~ " as string)), '-')"
        ) -%}
    {%- endfor -%}
    md5(concat({{ parts | join(", '|', ") }}))
{%- endmacro %}
