{#
    How far a capture has read, as a comment in the model's SQL: with the watermark in the SQL, the
    rows that are written and the watermark that is committed with them cannot differ.
#}
{% macro _capture_comment(capture) %}
    {%- set note = {
        'source': capture.source, 'number': capture.taken.number, 'before': capture.taken.watermark,
        'after': none if capture.get('is_partial') else capture.watermark,
        'about': capture.get('about', {}),
    } -%}
    {%- set bookkeeping = [] -%}
    {%- for column in capture.columns
        if column.name | lower in ['_batch', '_order', '_unmodified'] -%}
        {%- do bookkeeping.append(column.name) -%}
    {%- endfor -%}
    {%- do note.update({'bookkeeping': bookkeeping}) if bookkeeping -%}
    {%- do note.update({'former': capture.taken.former}) if capture.taken.get('former') -%}
    {%- do note.update({'begun': capture.taken.begun})
        if capture.taken.get('begun') is not none -%}
    {#- Of another table than the one that was read before: its version may be any. -#}
    {%- if (capture.diff or {}).get('state') and not capture.get('is_same') -%}
        {%- do note.update({'again_at': capture.diff.number}) -%}
    {%- endif -%}
    {#-
        The known state has the rows of all sources: whether there are several, the whole SELECT
        shows. A log may have taken another source before, which this one replaces.
    -#}
    {%- set is_log = capture.layout is not none and not dbt_history._is_of_versions(capture)
        and not capture.layout.get('is_source') -%}
    {%- if (capture.diff or {}).get('state')
        and (is_log or (capture.layout is none and capture.taken.watermark is none)) -%}
        {%- do note.update({'is_sole': capture.caller_name}) -%}
    {%- endif -%}
    {%- if (capture.diff or {}).get('state') is false and capture.layout is none
        and capture.taken.has_rows -%}
        {%- do note.update({'added_to': capture.taken.other_sources}) -%}
    {%- elif note.is_sole is defined and capture.taken.get('replaced') -%}
        {%- do note.update({'replaces': capture.taken.replaced}) -%}
    {%- endif -%}
    {%- set said = {} -%}
    {%- for column in capture.columns if column.said -%}
        {%- do said.update({column.name | lower: column.said}) -%}
    {%- endfor -%}
    {%- do note.update({'said': said}) if said -%}
    {%- for name in ['partly_said', 'renamed'] if capture.get(name) -%}
        {%- do note.update({name: capture[name]}) -%}
    {%- endfor -%}
    {#- A log of a source without a feed is compared with it in each later run. -#}
    {%- if capture.diff is not none and not capture.taken.has_rows and not capture.head.has_feed
        and capture.layout is none and not dbt_history._is_of_versions(capture) -%}
        {%- do note.update({'is_compared': true}) -%}
    {%- endif -%}
    {%- set unstored = dbt_history._unstored_columns(capture) -%}
    {%- do note.update({'unstored': unstored}) if unstored -%}
    {%- do return(dbt_history._note('capture', note)) -%}
{% endmacro %}


{#
    For a source that is missing for one run while the model reads others: it stays where it was.
    Empty if it was never read.
#}
{% macro _note_of_missing(capture) %}
    {%- set taken = dbt_history._taken_before(capture) -%}
    {%- do return('' if taken.watermark is none else dbt_history._note('capture', {
        'source': capture.source, 'number': taken.number, 'before': taken.watermark,
        'after': none, 'about': {},
    }) ~ '\n    ') -%}
{% endmacro %}


{#
    The columns of a source whose rows `changes` compares with the model's table, and that the table
    does not have.
#}
{% macro _unstored_columns(capture) %}
    {% set names = [] %}
    {% if capture.diff is not none and capture.diff.state and capture.layout is none %}
        {% set there = capture.diff.state_columns | map(attribute='name') | map('lower') | list %}
        {% for column in capture.columns if column.name | lower not in there %}
            {% do names.append(column.name) %}
        {% endfor %}
    {% endif %}
    {% do return(names) %}
{% endmacro %}


{#
    Problems of these columns, as text, unless the SELECT returns them, so that the table gets them:
    compared with NULL, every record would differ in every run. Where equal versions are joined, a
    record that is staged without a change makes none. With `on_schema_change: ignore` they are not
    compared (`_columns_not_kept`), but the SELECT may store them under another name.
#}
{% macro _check_unstored_columns(captured, staged, settings) %}
    {% set is_ignored = settings.on_schema_change == 'ignore' %}
    {% set problems = [] %}
    {% for name in (captured or {}).get('unstored', []) | unique
        if name | lower not in staged.names and (is_ignored or not settings.get('tracked')) %}
        {% do problems.append(
            'column ' ~ name ~ ' of the source is compared, and not stored, so that every record'
                ~ ' counts as changed: select it, or read the source through a view without it'
                if not is_ignored
                else 'column ' ~ name ~ ' of the source is neither stored nor compared'
                    ~ ' (on_schema_change: ignore), so that its changes would be lost: read the'
                    ~ ' source through a view without it, or with the name that the table has for'
                    ~ ' it'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    Problems of a new log, as text: columns by which it is compared with its source later
    (`_layout_of_changes`).
#}
{% macro _check_compared_columns(captured, staged) %}
    {% set problems = [] %}
    {% for name in ['_change_type', '_commit_version']
        if (captured or {}).get('is_compared') and name not in staged.names
        and dbt_history._hiding_option() != '--empty' %}
        {% do problems.append(
            'column ' ~ name ~ ' is missing: the source has no change data feed, so later runs'
                ~ ' compare it with the table, which has to record which rows it has taken'
        ) %}
    {% endfor %}
    {% do return(problems) %}
{% endmacro %}


{#
    All captures of a compiled SELECT: {'number' of the batch, 'watermarks' after it, 'before' it,
    'about', 'is_new', 'has_moved', 'bookkeeping', 'unstored', 'is_compared', 'partly_said',
    'said'}; none without a capture. With several sources use the lowest next batch number: if
    another run committed in between, that number is taken. `has_moved`: a source was read further
    than before, or for the first time; this is committed even if there are no rows. `bookkeeping`:
    columns of the sources that have names of staged rows. `unstored`: see `_unstored_columns`.
    `is_compared`: see `_check_compared_columns`. `partly_said`: columns that some rows do not say,
    which name them in `_unmodified` (`_partly_said_columns`). `said`: the types of columns whose
    structs have fewer fields than the table's (`_with_fields`), if all sources have them.
    `not_null` in `about`: see `_not_null_of_all`. `begun`: what the times of the rows exceed, by
    source (`_let_times_increase`).
#}
{% macro _captured_sources(select_sql) %}
    {% set notes = dbt_history._notes('capture', select_sql) %}
    {% if not notes %}
        {% do return(none) %}
    {% endif %}
    {% set sources = notes | map(attribute='source') | unique | list %}
    {% do dbt_history._refuse_replaced_source(notes, sources) %}
    {% set sole = notes | selectattr('is_sole', 'defined') | list %}
    {% if sources | length > 1 and sole %}
        {% do dbt_history._refuse_mixed_state(sole[0].is_sole, sources) %}
    {% endif %}
    {% set captured = {
        'number': notes | map(attribute='number') | min, 'watermarks': {}, 'before': {},
        'about': {}, 'is_new': false, 'has_moved': false, 'bookkeeping': [],
        'unstored': [], 'partly_said': [], 'said': {}, 'begun': [],
        'is_compared': notes | selectattr('is_compared', 'defined') | list != [],
    } %}
    {% for name, type in notes[0].get('said', {}).items() %}
        {% set others = [] %}
        {% for note in notes if note.get('said', {}).get(name) != type %}
            {% do others.append(note) %}
        {% endfor %}
        {% do captured.said.update({name: type}) if not others %}
    {% endfor %}
    {% for note in notes %}
        {% set reached = note.after if note.after is not none else note.before %}
        {% if note.before is not none %}
            {% do captured.before.update({note.get('former', note.source): note.before}) %}
        {% endif %}
        {% if reached is not none %}
            {% do captured.watermarks.update({note.source: reached}) %}
        {% endif %}
        {% do captured.begun.append(note.get('begun')) if note.after is not none %}
        {% set latest = [] %}
        {% for about in [captured.about, note.about] if about.get('times') %}
            {% do latest.append(about.times.latest) %}
        {% endfor %}
        {% do captured.about.update(note.about) %}
        {% do captured.about.update({'times': {'latest': latest | max}}) if latest %}
        {% do captured.update({
            'bookkeeping': captured.bookkeeping + note.get('bookkeeping', []),
            'unstored': captured.unstored + note.get('unstored', []),
            'partly_said': captured.partly_said
                + note.get('partly_said', []) | map(attribute='name') | list,
            'is_new': captured.is_new or note.after is not none,
            'has_moved': captured.has_moved or note.after not in [none, note.before],
        }) %}
    {% endfor %}
    {% if 'not_null' in captured.about %}
        {% do captured.about.update({'not_null': dbt_history._not_null_of_all(notes)}) %}
    {% endif %}
    {% do return(captured) %}
{% endmacro %}


{#
    Whether a source replaces those that the table was made from, the model's code tells before the
    whole SELECT is known (`_take_over_replaced`); here both have to agree:

        code names     SELECT reads    the new source
        -              new             replaces
        former, new    former, new     was added
        former, new    new             refused: replaces, or the former is left out in this run
        -              former, new     refused: was added, and compared with all rows
#}
{% macro _refuse_replaced_source(notes, sources) %}
    {% for note in notes %}
        {% set added_to, replaces = note.get('added_to', []), note.get('replaces', []) %}
        {% set is_left_out = added_to and not dbt_history._names_in_both(added_to, sources) %}
        {% if is_left_out or dbt_history._names_in_both(replaces, sources) %}
            {% do exceptions.raise_compiler_error(dbt_history._message(
                'changes',
                'whether a source was added to the model or replaces another one is not clear;'
                    ~ ' nothing was written',
                got='the code of the model ' ~ (
                    'names ' ~ added_to | join(', ') ~ ', which the SELECT does not read'
                        if is_left_out
                        else 'does not name ' ~ replaces | join(', ') ~ ', which the SELECT reads'
                ) ~ '; new is ' ~ note.source,
                expected='the former source in the code, in quotes or by ref or source, and its'
                    ~ ' changes in the SELECT; or neither of them',
                node=model.unique_id,
                way_out='if the new source replaces the former one, run the model once without the'
                    ~ ' name in its code: the new source is compared with the rows that the table'
                    ~ ' has. If it was added, read the changes of both'
                        if is_left_out
                        else "if it was added, add the line -- '" ~ replaces | join("', '")
                            ~ "' to the code",
            )) %}
        {% endif %}
    {% endfor %}
{% endmacro %}


{#
    The columns that cannot be NULL in the rows of any source. A source that is missing in this run
    has no rows, and says nothing.
#}
{% macro _not_null_of_all(notes) %}
    {% set state = namespace(names=none) %}
    {% for note in notes if note.about or note.after is not none %}
        {% set names = note.about.get('not_null', []) %}
        {% set state.names = names if state.names is none
            else dbt_history._names_in_both(state.names, names) %}
    {% endfor %}
    {% do return(state.names) %}
{% endmacro %}


{#
    A batch of captured rows has a number, and its commit holds how far the sources were read, and
    up to which time; earlier commits of the same run hold what was known before the run.
#}
{% macro _number_captured(batches, captured) %}
    {% if captured is none %}
        {% do return(none) %}
    {% endif %}
    {% for batch in batches %}
        {% do batch.update({
            'batch': batch.batch if batch.batch is not none else captured.number,
            'watermarks': captured.watermarks if loop.last else captured.before,
            'about': captured.about if loop.last else none,
        }) %}
    {% endfor %}
{% endmacro %}
