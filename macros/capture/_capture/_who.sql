{#
    SQL: who changed a row. The first that is known of: the `changed_by` column (not for a deletion,
    where it names the previous change), the user in the commit's metadata, the user name that the
    platform recorded; else NULL. The user of the run only if the model's `meta.history.mod_user` is
    invocation.
#}
{% macro _who(capture, changed_by) %}
    {%- set terms = [] -%}
    {%- if changed_by -%}
        {%- do terms.append(
            'cast(`new_row`.' ~ dbt_history._prefixed(dbt_history._column_of(capture, changed_by))
                ~ ' as string)'
        ) -%}
    {%- endif -%}
    {%- set users = dbt_history._by_version(
        dbt_history._attribution_of_versions(capture, 'user'),
        '`commit`' if capture.diff is not none else '`version`',
    ) -%}
    {%- if users is not none -%}{%- do terms.append(users) -%}{%- endif -%}
    {%- if dbt_history._history_meta(model, capture.caller_name).get('mod_user') == 'invocation' -%}
        {%- set author = dbt_history._run_attribution().get('author') -%}
        {%- do terms.append(
            dbt_history._string_literal(author) if author else 'current_user()'
        ) -%}
    {%- endif -%}
    {%- if not terms -%} {%- do return('cast(null as string)') -%} {%- endif -%}
    {%- do return(
        'coalesce(' ~ terms | join(', ') ~ ')' if terms | length > 1 else terms[0]
    ) -%}
{% endmacro %}


{#
    SQL: the text of a version in `texts`, {version: text}; consecutive versions with one text share
    a branch. None if there is no text.
#}
{% macro _by_version(texts, version) %}
    {%- set ranges = [] -%}
    {%- for number in texts.keys() | sort -%}
        {%- if ranges and ranges[-1].to == number - 1 and ranges[-1].text == texts[number] -%}
            {%- do ranges[-1].update({'to': number}) -%}
        {%- else -%}
            {%- do ranges.append({'from': number, 'to': number, 'text': texts[number]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set branches = [] -%}
    {%- for part in ranges -%}
        {%- do branches.append(
            ' when ' ~ version ~ (
                ' = ' ~ part.to if part['from'] == part.to
                else ' between ' ~ part['from'] ~ ' and ' ~ part.to
            ) ~ ' then ' ~ dbt_history._string_literal(part.text)
        ) -%}
    {%- endfor -%}
    {%- do return('case' ~ branches | join ~ ' end' if branches else none) -%}
{% endmacro %}


{#
    The users or transactions of the commits that rows are attributed to: {version: text}. A
    writer's commit metadata is JSON with `user` and `transaction`, or the user as plain text; this
    package's own records have the `author` of the run. Without it, the user name that the platform
    recorded. `field`: user or transaction.
#}
{% macro _attribution_of_versions(capture, field) %}
    {%- set found, named = {}, [] -%}
    {%- set diff = capture.diff or {} -%}
    {%- set first = capture.segments[0]['from'] if capture.segments else none -%}
    {%- for entry in capture.entries + capture.get('head', {}).get('entries', []) -%}
        {%- set in_feed = first is not none and entry.version >= first
            and entry.version <= capture.head.version -%}
        {%- if in_feed or (diff.get('is_one_commit') and entry.version == diff.version) -%}
            {%- do named.append(entry) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for entry in named + (diff.get('writers', []) if field == 'user' else []) -%}
        {%- set value = dbt_history._said_in(entry, field) -%}
        {%- if value is not none -%}
            {%- do found.update({entry.version: value | string}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do return(found) -%}
{% endmacro %}


{# The user or the transaction that a commit names, which may be 0; none if it names none. #}
{% macro _said_in(entry, field) %}
    {% set said, names = entry.said, [] %}
    {% if said is string and said.startswith('{') %}
        {% set said = fromjson(said, none) or {} %}
    {% endif %}
    {% if said is mapping %}
        {% do names.append(said.get(field)) %}
        {% do names.append(said.get('author')) if 'dbt_history' in said and field == 'user' %}
    {% elif field == 'user' %}
        {% do names.append(said) %}
    {% endif %}
    {% do names.append(entry.user) if field == 'user' %}
    {% do return(names | reject('in', [none, '']) | first | default(none)) %}
{% endmacro %}


{#
    Adds to the capture's difference which commits its rows are attributed to. `commit`: SQL for the
    rows that are there; a row that is gone has a commit only if there was a single one.

        commits of the source   4     5     6          state known: 4, difference at 6
        last wrote row a              5                with row tracking: a has 5, b has 6
        last wrote row b                    6          without: which of the two is not known
        deleted row c                 5                not known

    `writers`: with row tracking, the commits since it was last enabled: rows written before have
    the version of the commit that enabled it, or of one that copied their file.
#}
{% macro _attribute_difference(capture) %}
    {% set diff, head = capture.diff, capture.head %}
    {% do diff.update({
        'commit': 'cast(null as bigint)', 'is_one_commit': false, 'writers': [],
    }) %}
    {% if diff.version is none %}
        {% do return(none) %}
    {% endif %}
    {% if diff.state and capture.get('is_same')
        and diff.version == capture.taken.watermark.version + 1 %}
        {% do diff.update({'commit': diff.version ~ 'L', 'is_one_commit': true}) %}
    {% elif head.tracks_rows and '_metadata' not in diff.columns | map(attribute='name')
        | map('lower') | list %}
        {% set entries = dbt_history._history_entries(capture.relation) %}
        {% set state = namespace(since=-1) %}
        {% for entry in entries if state.since < 0 and dbt_history._changes_tracking(entry) %}
            {% set state.since = entry.version %}
        {% endfor %}
        {% if state.since <= diff.version %}
            {% do diff.update({
                'commit': '`_metadata`.`row_commit_version`',
                'writers': entries | selectattr('version', 'gt', state.since)
                    | selectattr('version', 'le', diff.version) | list,
            }) %}
        {% endif %}
    {% endif %}
{% endmacro %}


{# Whether row tracking was enabled or disabled: until then rows have other versions. #}
{% macro _changes_tracking(entry) %}
    {% do return(
        entry.operation == 'ROW TRACKING BACKFILL'
            or ('TBLPROPERTIES' in entry.operation
                and 'enableRowTracking' in tojson(entry.parameters))
    ) %}
{% endmacro %}
