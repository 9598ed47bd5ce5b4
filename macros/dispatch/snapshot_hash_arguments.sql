{#
    The hash of a snapshot's version id. Each argument is written with its length, so that NULL and
    '' differ, and ('a|', 'b') and ('a', '|b') too.
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
