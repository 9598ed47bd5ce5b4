{#
    What Spark shows instead of the value of a property or setting, if the name or the value matches
    spark.redaction.regex or spark.sql.redaction.options.regex: by default if one of them contains
    url, secret, password, token, access key or credential (docs/decisions/0134-masked-values.md).
#}
{% macro _masked() %}
    {% do return('*********(redacted)') %}
{% endmacro %}


{#
    The properties of a table: {name: value}; `only`: these names, if a query can be saved by that.
    DESCRIBE DETAIL shows what SHOW TBLPROPERTIES masks. Iceberg has no such statement: there a
    value remains masked, unless it was stored as `_property_text`.
#}
{% macro _table_properties(relation, only=none) %}
    {% set name = dbt_history._quoted_relation(relation) %}
    {% set found = {} %}
    {% for row in run_query('show tblproperties ' ~ name).rows if only is none or row[0] in only %}
        {% do found.update({row[0]: row[1] | string}) %}
    {% endfor %}
    {% if not relation.is_iceberg and dbt_history._masked() in found.values() | list %}
        {% do found.update(dbt_history._as_mapping(
            run_query('describe detail ' ~ name).rows[0]['properties']
        )) %}
    {% endif %}
    {% do return(found) %}
{% endmacro %}


{# A property of the table; none if it is not set. #}
{% macro _table_property(relation, name) %}
    {% do return(dbt_history._table_properties(relation, [name]).get(name)) %}
{% endmacro %}


{#
    The text of a property that has names of models and columns in it, as hexadecimal digits: in
    these Spark finds no word to mask.
#}
{% macro _property_text(value) %}
    {% do return(tojson(value, sort_keys=true).encode('utf-8').hex()) %}
{% endmacro %}


{#
    The value of such a property; a release before this one stored JSON. None if it is not set, or
    is masked.
#}
{% macro _property_value(text) %}
    {% set is_hex = text and modules.re.match('([0-9a-f]{2})+$', text) %}
    {% do return(fromjson(
        ''.encode('utf-8').fromhex(text).decode('utf-8') if is_hex else (text or ''), none,
    )) %}
{% endmacro %}


{#
    A map column as the connection returns it: a mapping from a session, JSON from others, and
    almost JSON from a thrift server, which quotes a value without escaping the quotes inside:
    {"mode":"Overwrite","partitionBy":"["day"]"}. There a value ends before the next key or the
    closing brace; if a key occurs again inside a value, the first occurrence counts.
#}
{% macro _as_mapping(value) %}
    {% if value is not string %}
        {% do return(value or {}) %}
    {% endif %}
    {% set found = fromjson(value) %}
    {% if found is mapping %}
        {% do return(found) %}
    {% endif %}
    {% set found = {} %}
    {% for key, raw, text in modules.re.findall(
        '"([\\w.-]+)":(null|"(.*?)")(?=,"[\\w.-]+":(?:null|")|[}]$)', value, modules.re.DOTALL,
    ) %}
        {% do found.setdefault(key, none if raw == 'null' else text) %}
    {% endfor %}
    {% do return(found) %}
{% endmacro %}
