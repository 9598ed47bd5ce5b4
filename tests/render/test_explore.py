"""The page of `dbt-history explore`: its data without Spark, and what it does in a browser."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_history.embedded import as_json
from dbt_history.explore import export
from dbt_history.explore.export import (
    Exported,
    Row,
    as_deltas,
    compact,
    hide_keys,
    is_tombstone,
    read_arrivals,
    read_marks,
    row_of,
    sort_key,
    where,
)
from dbt_history.explore.page import page
from dbt_history.explore.project import DbtProject, ExploreError, reason
from dbt_history.explore.show import cell, paired, time_text
from dbt_history.explore.tables import (
    HistoryTable,
    call_of,
    find_node,
    hidden_columns,
    kind_of_log,
    model_name,
    require_instants,
)
from dbt_history.output import asset
from dbt_history.session import MetastoreInUseError
from dbt_history.sql import string_literal
from dbt_history.timeline.command import read_key
from dbt_history.timeline.settings import settings_of
from tests.support.browser import needs_browser, played
from tests.support.pages import Page, leaves_the_file

DAY = 86_400_000_000
JANUARY = 1_704_067_200_000_000  # 2024-01-01
HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"><b>&amp;{{ 7 }}"


def day(number: int) -> int:
    """The start of a day of January 2024."""
    return JANUARY + (number - 1) * DAY


def history_table(name: str, **more: Any) -> HistoryTable:
    columns = {"id": "bigint", "city": "string", "n": "int"}
    settings: dict[str, Any] = {
        "name": name, "schema": "s", "relation": None, "kind": "versions", "key": ("id",),
        "reader": "validity", "call": f"ref('{name}')", "columns": columns,
    }  # fmt: skip
    return HistoryTable(**{**settings, **more})


def version(
    key: int, since: int, until: int | None, city: str | None, n: int = 0, **more: Any
) -> Row:
    return Row((str(key),), since, until, until is None, 0, [city, str(n)], **more)


def exported(name: str = "customers", rows: list[Row] | None = None, **more: Any) -> Exported:
    """Record 1: Bonn, then Rome, which was late, then Oslo. Record 2: deleted from day 3 to 8.

    Record 3: hostile text.

        day   1     2     3     4     5     6     7     8     9
        1     [ Bonn ----)[ Rome ----)[ Oslo ------------------->
        2     [ Lima ----)                              [ Lima ->
        3                 [ </script>… ------------------------->
    """
    commits = [
        {"version": 1, "batch": "batch 1", "run": "r-1", "author": "ann", "message": "x"},
        {"version": 2, "batch": "batch 2", "run": "r-2", "author": "bob", "message": None},
    ]
    marks = {
        "tags": [{"name": "audit", "at": str(day(4)), "author": "ann", "reason": None}],
        "horizon": str(day(1)),
        "suspensions": [[str(day(5)), str(day(6))]],
    }
    rows = rows or [
        version(1, day(1), day(3), "Bonn", arrived=0),
        version(1, day(3), day(5), "Rome", arrived=1, is_late=True),
        version(1, day(5), None, "Oslo", arrived=0),
        version(2, day(1), day(3), "Lima", arrived=0),
        version(2, day(8), None, "Lima", arrived=1),
        version(3, day(3), None, HOSTILE, arrived=1),
    ]
    table = history_table(name, **more)
    columns = [("city", "string"), ("n", "int")]
    return Exported(table, "time", "timestamp", columns, rows, commits, marks)


def html(*tables: Exported) -> str:
    return page(compact(tables or (exported(),), "shop & <co>", "2024-02-01 00:00:00"))


# -- the data --------------------------------------------------------------------------------------


def test_positions_are_exact_beyond_the_numbers_of_javascript() -> None:
    points = [-(2**62), 5, 2**53, 2**53 + 1, 2**62]
    steps = as_deltas(points)

    assert all(isinstance(one, str) or abs(one) < 2**53 for one in steps)
    read, total = [], 0
    for step in steps:
        total += int(step)
        read.append(total)
    assert read == points


def test_equal_values_are_stored_once_and_null_is_not_a_text() -> None:
    rows = [version(1, 1, 2, "NULL"), version(1, 2, 3, None), version(1, 3, None, "NULL")]
    (table,) = compact([exported(rows=rows)], "p", "")["tables"]

    assert table["cells"][0] == {"values": ["NULL"], "places": [0, -1, 0]}
    assert (table["since"], table["until"]) == ([0, 1, 2], [1, 2, -1])


def test_a_deletion_that_no_version_shows_is_left_out() -> None:
    columns = [("city", "string"), ("_synced", "timestamp")]

    assert is_tombstone(Row(("1",), 5, 5, False, 0, [None, "7"]), columns)
    assert not is_tombstone(Row(("1",), 5, 5, False, 0, ["x", "7"]), columns)
    assert not is_tombstone(Row(("1",), 5, None, True, 0, [None, "7"]), columns)


def test_a_repeated_suspension_or_resumption_has_no_frame_of_its_own() -> None:
    """Of the calls suspend, suspend, resume, resume the first of each kind counts."""
    kinds = ["suspension", "suspension", "resumption", "resumption", "suspension"]
    marks = [(kind, None, None, str(day(n)), "ann", None) for n, kind in enumerate(kinds, 1)]
    project: Any = SimpleNamespace(
        adapter=SimpleNamespace(
            get_relation=lambda **name: SimpleNamespace(render=lambda: "s.history_marks")
        ),
        rows=lambda sql: marks,
    )
    found = read_marks(project, history_table("h"), "timestamp", 1)

    assert found["suspensions"] == [[str(day(1)), str(day(3))], [str(day(5)), None]]


def test_the_states_of_a_table_before_its_cleaning_are_not_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "MAX_VERSIONS", 1)
    asked: list[str] = []
    one = exported("h", [version(1, 1, None, "a")])
    before = replace(one, table=replace(one.table, relation=SimpleNamespace(render=lambda: "s.h")))

    def rows(sql: str) -> list[tuple[str, int, int]]:
        asked.append(sql)
        return [(json.dumps(["1", str(number), "0"]), 0, 0) for number in range(3)]

    project: Any = SimpleNamespace(rows=rows)
    read_arrivals(project, before, "0", "0", "true", 1)
    assert (before.commits, before.rows[0].arrived) == ([], -1)
    assert asked[0].endswith(" limit 3")


def test_keys_are_sorted_as_numbers_where_they_are_numbers() -> None:
    keys = ["b", "10", "9", "--5", "-1", None, "٣"]

    assert sorted(keys, key=lambda key: sort_key([key])) == [
        None, "-1", "9", "10", "--5", "b", "٣",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "keys",
    [("7", "007", "+7", "7 "), ("0", "-0", "00"), ("a", "A", "", None), ("²", "2", "02", "٢")],
)
def test_the_rows_of_a_key_are_neighbours_whatever_other_keys_look_like_it(
    keys: tuple[str | None, ...],
) -> None:
    mixed = [(first, second) for _ in range(2) for first in keys for second in keys]
    mixed.sort(key=sort_key)

    assert mixed[::2] == mixed[1::2]
    assert len(set(mixed[::2])) == len(keys) ** 2


def test_a_version_without_an_end_is_open() -> None:
    """Also one whose end plus the gap is no bigint, in a convention without an open end."""
    assert row_of('["1", null, "false", "0", null, "7"]', 1, 1).is_open
    assert not row_of('["1", "5", "false", "0", null, "7"]', 1, 1).is_open


def column(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def nodes() -> dict[str, dict[str, Any]]:
    source = {
        "mail": column("Mail", config={"meta": {"history": {"hide": True}}}),
        "born": column("born", tags=["personal"]),
        "city": column("city", meta={"history": {"hide": False}}),
    }
    return {
        "source.s": {
            "unique_id": "source.s", "resource_type": "source", "name": "s", "columns": source,
        },
        "model.m_hx": {
            "unique_id": "model.m_hx", "resource_type": "model", "name": "m_hx", "alias": "other",
            "schema": "s", "columns": {"phone": column("phone", config={"tags": ["PII"]})},
            "depends_on": {"nodes": ["source.s", "model.gone"]},
        },
    }  # fmt: skip


def test_a_column_is_hidden_by_its_meta_its_tags_and_by_those_of_the_main_table() -> None:
    found = find_node(nodes(), "m_hx")

    assert hidden_columns(nodes(), found) == {"mail", "born", "phone"}
    assert found is not None
    mirror = {**found, "config": {"materialized": "history_append"}}
    assert hidden_columns(nodes(), mirror) >= {"mail", "main_mail", "main_born"}
    assert find_node(nodes(), "s.other") == found
    assert find_node(nodes(), "elsewhere.other") is None
    assert hidden_columns(nodes(), None) == frozenset()


def test_a_source_hides_its_columns_by_its_name_its_table_and_in_a_model_of_the_same_table() -> (
    None
):
    source = {
        "unique_id": "source.crm.people", "resource_type": "source", "source_name": "crm",
        "name": "people", "identifier": "People_T", "schema": "Raw",
        "columns": {"mail": column("mail", tags=["pii"])},
    }  # fmt: skip
    seed = {
        "unique_id": "seed.p", "resource_type": "seed", "name": "p", "alias": "people_t",
        "schema": "raw", "columns": {"born": column("born", tags=["pii"])},
    }  # fmt: skip
    found = {"source.crm.people": source}

    for name in ("people", "raw.people_t", "Raw.People_T"):
        assert find_node(found, name) == source
        assert hidden_columns(found, find_node(found, name)) == {"mail"}
    assert call_of(source, "Raw", "People_T") == "source('crm', 'people')"
    both = {**found, "seed.p": seed}
    assert find_node(both, "raw.people_t") == seed
    assert hidden_columns(both, seed) == {"mail", "born"}


def test_each_version_of_a_model_has_its_own_name_and_ref() -> None:
    versions = {
        f"model.ver.v{number}": {
            "unique_id": f"model.ver.v{number}", "resource_type": "model", "name": "ver",
            "alias": f"ver_v{number}", "schema": "s", "version": number, "latest_version": 2,
        }
        for number in (1, 2)
    }  # fmt: skip
    first, second = versions.values()

    assert [model_name(one) for one in versions.values()] == ["ver_v1", "ver_v2"]
    assert (find_node(versions, "ver_v1"), find_node(versions, "ver_v2")) == (first, second)
    assert find_node(versions, "ver") == second
    assert call_of(first, "s", "ver_v1") == "ref('ver', v=1)"
    assert call_of(second, "s", "ver_v2") == "ref('ver', v=2)"


def test_a_nodes_name_precedes_the_alias_of_another_and_with_its_schema_its_table_does() -> None:
    staged = {
        "unique_id": "model.p.stg", "resource_type": "model", "name": "stg", "alias": "people",
        "schema": "staging", "config": {},
    }  # fmt: skip
    people = {**staged, "unique_id": "model.p.people", "name": "people", "alias": "dim_people"}
    found = {"model.p.stg": staged, "model.p.people": people}

    assert find_node(found, "people") == people
    assert find_node(found, "staging.people") == staged
    assert settings_of(found, "people").name == "`staging`.`dim_people`"
    assert settings_of(found, "other.`a.b`").name == "`other`.`a.b`"


def test_the_values_of_a_hidden_key_are_not_in_the_page() -> None:
    rows = [version(1234567, 1, 2, "a"), version(1234567, 2, None, "b"), version(8, 1, None, "c")]
    one = exported(rows=rows, hidden=frozenset({"id"}))
    hide_keys(one)
    data = as_json(compact([one], "p", ""))

    assert "1234567" not in data
    assert one.rows[0].key == one.rows[1].key != one.rows[2].key
    assert {row.key[0] for row in one.rows} == {"hidden 1", "hidden 2"}


def test_filters_are_literals_of_the_columns_type() -> None:
    table = history_table("t")

    assert where(table, []) == "true"
    assert where(table, [{"id": "1' or '1"}]) == "(`id` = cast('1\\' or \\'1' as bigint))"
    assert string_literal("\\'") == "'\\\\\\''"
    assert string_literal("${env:HOME}") == "'\\u0024{env:HOME}'"
    with pytest.raises(ExploreError, match="t has no column gone"):
        where(table, [{"gone": "1"}])


def test_a_message_is_the_packages_own_or_the_first_that_says_something() -> None:
    own = "Runtime Error\n  dbt_history.as_of: no\n      got: 1\n  > in macro as_of (x)\n"

    assert reason(own) == "dbt_history.as_of: no\n      got: 1"
    assert reason("Runtime Error\n  [TABLE] is gone\n more") == "[TABLE] is gone"


def test_the_changes_of_a_terminal_pair_both_sides_of_an_update() -> None:
    columns = [("id", "bigint"), ("city", "string")]
    rows: list[list[str | None]] = [
        ["insert", "t1", "2", "2", "Oslo"], ["update_postimage", "t2", "1", "1", "Rome"],
        ["update_preimage", "t2", "1", "1", None],
    ]  # fmt: skip
    insert, update = paired(columns, rows, 1)

    assert (insert["change"], insert["before"]) == ("insert", None)
    assert update["row"]["city"] == "Rome"
    assert update["before"] == {"id": "1", "city": None}
    assert cell("a\x1b[31m\nb") == "a\\x1b[31m\\nb"


def test_the_old_value_of_an_update_is_of_the_same_record_if_its_key_is_hidden() -> None:
    rows: list[list[str | None]] = [
        [f"update_{side}image", "t1", key, city]
        for key, side, city in (
            ("1", "post", "Rome"),
            ("1", "pre", "Bonn"),
            ("2", "pre", "Lima"),
            ("2", "post", "Oslo"),
        )
    ]
    changes = paired([("city", "string")], rows, 1)

    assert [(one["before"]["city"], one["row"]["city"]) for one in changes] == [
        ("Bonn", "Rome"), ("Lima", "Oslo"),
    ]  # fmt: skip
    assert "key" not in changes[0]["row"]


def test_only_the_end_of_a_period_is_open() -> None:
    open_end = 253_402_300_799_999_000

    assert time_text(open_end, True) == "open"
    assert time_text(open_end, False) == "9999-12-31 23:59:59.999"
    assert time_text(open_end * 2, False) == f"{open_end * 2} microseconds since 1970"


def test_a_hidden_key_that_is_null_is_another_one_than_an_empty_text() -> None:
    rows = [Row((key,), 1, None, True, 0, []) for key in (None, "")]
    hide_keys(exported(rows=rows, hidden=frozenset({"id"})))

    assert {row.key[0] for row in rows} == {"hidden 1", "hidden 2"}


def test_a_timestamp_of_key_is_in_utc_unless_it_names_a_zone() -> None:
    table = history_table("t", columns={"at": "timestamp"})

    for text in ("2024-01-01", "2024-01-01 00:00:00 UTC", "2024-01-01T02:00:00+02:00"):
        assert where(table, [{"at": text}]) == f"(`at` = timestamp_micros({JANUARY}L))"
    with pytest.raises(ExploreError, match="'soon' is not a timestamp"):
        where(table, [{"at": "soon"}])


def test_a_comma_begins_a_column_only_where_an_equals_sign_follows() -> None:
    assert read_key(["space=roads,id=7"]) == (["space", "id"], [{"space": "roads", "id": "7"}])
    assert read_key(["name=Smith, John"]) == (["name"], [{"name": "Smith, John"}])
    assert read_key(["space, id"]) == (["space", "id"], [])


def test_columns_alone_make_no_mirror() -> None:
    columns = {"id", "mod_time", "deleted"}
    made = {"resource_type": "model", "config": {"materialized": "history_append"}}

    assert kind_of_log(None, "people_hx", columns | {"people_hx_id"}) == "mirror"
    assert kind_of_log(None, "people", columns) == ""
    assert kind_of_log(made, "people_hx", columns) == "mirror"
    assert kind_of_log(None, "e", {"_hist_event", "_hist_time"}) == "events"


@pytest.mark.parametrize(
    ("kind", "convention", "column"),
    [("versions", "validity", "valid_to"), ("versions", {"start": "s", "end": "E"}, "e"),
     ("mirror", {"convention": "hx"}, "mod_time")],
)  # fmt: skip
def test_a_time_without_a_zone_is_refused(kind: str, convention: Any, column: str) -> None:
    require_instants("t", {column: "timestamp", "x": "timestamp_ntz"}, kind, convention)
    with pytest.raises(ExploreError, match=f"(?i)t: {column} of type timestamp_ntz is no instant"):
        require_instants("t", {column.upper(): "timestamp_ntz"}, kind, convention)


class Described(DbtProject):
    """A project whose only answer is a DESCRIBE."""

    def __init__(self, described: list[tuple[Any, ...]]) -> None:
        self.described = described

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.described


def test_the_name_of_a_column_can_begin_like_a_header() -> None:
    lines = [
        ("id", "int", None), ("#mail", "string", None), ("n", "int", None),
        ("# Partition Information", "", ""), ("# col_name", "data_type", "comment"),
        ("n", "int", ""),
    ]  # fmt: skip
    relation = SimpleNamespace(render=lambda: "t")

    assert Described(lines).columns(relation) == {"id": "int", "#mail": "string", "n": "int"}


# -- the page --------------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_contains_no_value_as_markup() -> None:
    text = html()
    shown = Page(text)

    assert shown.fetched == []
    assert [link for link in shown.links if leaves_the_file(link)] == []
    assert "default-src 'none'" in text
    assert "unsafe-eval" not in text
    assert "onerror" not in {name for _, found in shown.tags for name in found}
    assert json.loads(as_json({"v": HOSTILE})) == {"v": HOSTILE}
    assert "<" not in as_json({"v": HOSTILE})


def test_every_control_has_a_label() -> None:
    shown = Page(html())
    labelled = {"INPUT", "SELECT"}

    assert len(shown.ids) == len(set(shown.ids))
    for tag, found in shown.tags:
        if tag.upper() in labelled:
            assert found.get("id"), found
    assert html().count("<label") == sum(tag in ("input", "select") for tag, _ in shown.tags)


AT = f"#at={day(6)}"


@needs_browser
def test_the_line_moves_over_all_tables_and_marks_what_differs(tmp_path: Path) -> None:
    second = exported("contracts")
    script = """
        function table(name) { return document.querySelector('[role=table][aria-label="Rows of ' + name + '"]'); }
        function text(name) { return Array.from(table(name).querySelectorAll('.grid-row')).map(function (row) {
            return Array.from(row.children).slice(0, 2).map(function (one) { return one.firstChild.textContent; }).concat(row.className.replace('grid-row', '').trim()); }); }
        var seen = [text('customers'), text('contracts')];
        var slider = document.getElementById('slider');
        slider.value = 0; slider.dispatchEvent(new Event('input'));
        seen.push(text('customers'));
        document.getElementById('forth').click();
        seen.push(document.getElementById('at').value);
        document.getElementById('at').value = '2024-01-08'; document.getElementById('at').dispatchEvent(new Event('change'));
        document.getElementById('than').value = '2024-01-02'; document.getElementById('than').dispatchEvent(new Event('change'));
        seen.push(Array.from(table('customers').querySelectorAll('.grid-row')).map(function (row) { return row.className; }));
        seen.push(Array.from(table('customers').querySelectorAll('.changed')).map(function (one) { return one.title; }));
        document.getElementById('only').click();
        seen.push(text('customers').length);
        await pause(300);
        seen.push(document.getElementById('change-count').textContent);
        seen.push(location.hash);
        document.getElementById('at').value = 'soon'; document.getElementById('at').dispatchEvent(new Event('change'));
        seen.push(document.getElementById('at').getAttribute('aria-invalid'));
        return seen;
    """  # noqa: E501 - a script
    seen, shown = played(html(exported(), second), tmp_path, script, AT)

    first = [["1", "Oslo", ""], ["3", HOSTILE, ""]]
    assert seen[:2] == [first, first]
    assert seen[2] == [["1", "Bonn", ""], ["2", "Lima", ""]]
    assert seen[3] == "2024-01-03 00:00:00"
    assert seen[4] == ["grid-row", "grid-row", "grid-row is-new"]
    assert seen[5] == ["at the second date: Bonn"]
    assert seen[6] == 2
    # Record 2 comes back at the line itself.
    assert seen[7] == "10 changes after 2024-01-02 00:00:00, up to 2024-01-08 00:00:00"
    assert f"at={day(8)}" in seen[8]
    assert f"than={day(2)}" in seen[8]
    assert seen[9] == "true"
    assert "onerror" not in {name for _, found in shown.tags for name in found}


@needs_browser
def test_a_record_is_found_and_its_versions_are_drawn(tmp_path: Path) -> None:
    script = """
        var find = document.getElementById('find');
        find.focus(); find.value = 'city=Li, id=2'; find.dispatchEvent(new Event('input'));
        await pause(300);
        var keys = document.querySelectorAll('#rows button.key'), seen = [keys.length];
        keys[0].focus();
        seen.push(document.activeElement === keys[0], keys[0].getAttribute('aria-label'));
        keys[0].click();
        while (!document.documentElement.dataset.drawn) await pause(20);
        seen.push(document.querySelectorAll('#version-chart svg text').length > 0);
        seen.push(Array.from(document.querySelectorAll('#version-rows .grid-row')).map(function (row) {
            return Array.from(row.children).slice(3).map(function (one) { return one.textContent; }); }));
        seen.push(document.getElementById('version-chart').textContent);
        seen.push(location.hash);
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(), tmp_path, script, f"#at={day(9)}")

    assert seen[:4] == [1, True, "id 2: show its versions", True]
    assert seen[4] == [
        ["first version", "ann", "batch 1, run r-1: x"],
        ["inserted again after a deletion; no data column", "bob", "batch 2, run r-2"],
    ]
    assert "deleted" in seen[5]
    assert "tag audit" in seen[5]
    assert "horizon" in seen[5]
    assert "key=" in seen[6]


@needs_browser
def test_a_link_opens_the_same_view(tmp_path: Path) -> None:
    key = '{"table":"s.customers","key":["1"]}'
    link = (
        f"#tables=s.customers&at={day(4)}&than={day(2)}&find=1&match=exact&only=1&user=bob"
        f"&zone=Asia/Tokyo&key={key.replace(chr(34), '%22')}"
    )
    script = """
        while (!document.documentElement.dataset.drawn) await pause(20);
        return [document.getElementById('at').value, document.getElementById('than').value,
            document.getElementById('find').value, document.getElementById('match').value,
            document.getElementById('only').checked, document.getElementById('user').value,
            document.querySelectorAll('#rows .panel').length, document.getElementById('versions-title').textContent,
            document.querySelectorAll('#version-rows .is-in-force').length,
            document.querySelectorAll('#version-rows .grid-row')[1].lastChild.textContent,
            document.querySelector('#rows pre').textContent, document.querySelectorAll('#change-rows .grid-row').length];
    """  # noqa: E501 - a script
    seen, _ = played(html(exported(), exported("contracts")), tmp_path, script, link)

    assert seen[:3] == ["2024-01-04 09:00:00", "2024-01-02 09:00:00", "1"]
    assert seen[3:9] == ["exact", True, "bob", 1, "Versions of 1", 1]
    assert seen[9] == "◆ late, batch 2, run r-2"
    assert seen[10] == (
        "select *\nfrom {{ dbt_history.as_of(ref('customers'), '2024-01-04 00:00:00', 'validity')"
        " }}\nwhere `id` = 1\n-- also the rows that did not change"
        "\n\n-- what changed between the two dates\nselect *\nfrom {{ dbt_history.changeset("
        "ref('customers'), '2024-01-02 00:00:00.000001', '2024-01-04 00:00:00.000001',"
        " 'validity', key=['id'])"
        " }}\nwhere `id` = 1"
    )
    assert seen[11] == 1


@needs_browser
def test_the_line_is_exact_while_the_versions_of_a_record_are_drawn(tmp_path: Path) -> None:
    """The number of the picture is one of milliseconds, or is less exact than the axis."""
    end, number = day(5) + 123_456, 2**60
    times = exported(rows=[version(1, day(1), end, "a"), version(1, end, None, "b")])
    rows = [version(1, number, number + 5, "a"), version(1, number + 5, None, "b")]
    numbers = replace(exported("numbers", rows), axis="number", point_type="bigint", marks={
        "tags": [], "horizon": None, "suspensions": [],
    })  # fmt: skip
    script = """
        var seen = [];
        function look() { seen.push([document.getElementById('status').textContent.split(';')[0], document.querySelector('#rows .grid-row').children[1].textContent,
            new URLSearchParams(location.hash.slice(1)).get('at')]); }
        async function set(text) { var at = document.getElementById('at'); at.value = text; at.dispatchEvent(new Event('change')); await pause(500); look(); }
        async function choose() { var drawn = document.documentElement.dataset.drawn; document.querySelector('#rows button.key').click();
            while (document.documentElement.dataset.drawn === drawn) await pause(20); }
        await choose();
        await set('2024-01-05 00:00:00.123455'); await set('2024-01-05 00:00:00.123456');
        document.getElementById('back').click(); await pause(500); document.getElementById('forth').click(); await pause(500); look();
        var axis = document.getElementById('axis'); axis.value = 'number'; axis.dispatchEvent(new Event('change'));
        await choose();
        await set('1152921504606846980'); await set('1152921504606846981'); await set('9223372036854775807');
        await set('9223372036854775808');
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(times, numbers), tmp_path, script)

    assert seen[:3] == [
        ["1 row as of 2024-01-05 00:00:00.123455 UTC", "a", str(end - 1)],
        *[["1 row as of 2024-01-05 00:00:00.123456 UTC", "b", str(end)]] * 2,
    ]
    assert seen[3:] == [
        [f"1 row as of {number + 4}", "a", str(number + 4)],
        [f"1 row as of {number + 5}", "b", str(number + 5)],
        [f"1 row as of {2**63 - 1}", "b", str(2**63 - 1)],
        [f"Not a whole number of 64 bits: {2**63}", "b", str(2**63 - 1)],
    ]


@needs_browser
def test_a_link_has_numbers_of_64_bits_and_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    rows = [version(1, 2**60, 2**60 + 5, "a"), version(1, 2**60 + 5, None, "b")]
    numbers = replace(exported(rows=rows), axis="number", point_type="bigint")
    script = """
        var seen = [];
        async function open(link) { location.hash = link; await pause(300); seen.push(document.getElementById('status').textContent); }
        await open('#at=1152921504606846980'); await open('#at=-9223372036854775808&than=9223372036854775807');
        await open('#at=9223372036854775808'); await open('#at=1152921504606846980&than=soon');
        await open('#at=2024-01-05');
        document.getElementById('back').click(); await pause(300); seen.push(document.getElementById('status').textContent);
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(numbers), tmp_path, script)

    last = f"1 row as of {2**60 + 5}"
    assert seen == [
        f"1 row as of {2**60 + 4}",
        f"0 rows as of {-(2**63)}; marked: what differs from {2**63 - 1}",
        f"Not readable in this link: at={2**63}. {last}",
        f"Not readable in this link: than=soon. 1 row as of {2**60 + 4}",
        f"Not readable in this link: at=2024-01-05. {last}",
        f"1 row as of {2**60}",
    ]


@needs_browser
def test_a_csv_keeps_null_apart_and_runs_no_formula(tmp_path: Path) -> None:
    rows = [
        version(1, day(1), None, "=1+1"), version(2, day(1), None, None, n=-5),
        version(3, day(1), None, ""), version(4, day(1), None, 'a,"b"\nc'),
    ]  # fmt: skip
    seen, _ = played(html(exported(rows=rows)), tmp_path, "return window.explore.csv();")

    assert seen[0].split("\r\n")[:4] == [
        'id,city,n,from,"to, exclusive"', "1,'=1+1,0,2024-01-01 00:00:00,",
        "2,,-5,2024-01-01 00:00:00,", '3,"",0,2024-01-01 00:00:00,',
    ]  # fmt: skip
    assert '4,"a,""b""\nc",0,' in seen[0]


@needs_browser
def test_a_csv_has_the_rows_in_view_also_those_only_at_the_second_date(tmp_path: Path) -> None:
    rows = [
        version(1, day(1), None, "-1.5E-7"), version(2, day(1), day(3), "-x"),
        version(3, day(3), None, "-Infinity"),
    ]  # fmt: skip
    link = f"#at={day(4)}&than={day(2)}"
    seen, _ = played(html(exported(rows=rows)), tmp_path, "return window.explore.csv();", link)

    assert [line.split(",") for line in seen[0].replace('"to, exclusive"', "to").splitlines()] == [
        ["id", "city", "n", "from", "to", "in view"],
        ["1", "-1.5E-7", "0", "2024-01-01 00:00:00", "", "as of"],
        ["3", "-Infinity", "0", "2024-01-03 00:00:00", "", "as of"],
        ["2", "'-x", "0", "2024-01-01 00:00:00", "2024-01-03 00:00:00", "only at the second date"],
    ]


@needs_browser
def test_an_empty_choice_a_key_of_time_and_two_tables_of_one_name_stay_apart(
    tmp_path: Path,
) -> None:
    columns = {"id": "timestamp", "city": "string", "n": "int"}
    tables = [exported(rows=[version(day(2), day(1), None, schema)], schema=schema, columns=columns)
              for schema in ("a", "b")]  # fmt: skip
    script = """
        function boxes() { return Array.from(document.querySelectorAll('#tables input')); }
        function texts(query) { return Array.from(document.querySelectorAll(query)).map(function (one) { return one.textContent; }); }
        document.querySelector('#rows button.key').click();
        var seen = [document.getElementById('versions-title').textContent, texts('#change-key span'),
            texts('#version-rows .grid-row > :first-child'), new Set(texts('#change-rows .grid-row > :nth-child(2)')).size];
        boxes().forEach(function (box) { if (box.checked) box.click(); });
        var hash = location.hash;
        location.hash = '#at=1'; await pause(300);
        location.hash = hash; await pause(300);
        seen.push(boxes().map(function (box) { return box.checked; }), document.querySelectorAll('#rows .panel').length);
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(*tables), tmp_path, script)

    assert seen[0] == "Versions of 2024-01-02 00:00:00"
    assert seen[1] == ["a.customers", "b.customers"]
    assert seen[2] == [f"{name}.customers · 2024-01-02 00:00:00" for name in "ab"]
    assert seen[3] == 2
    assert seen[4:] == [[False, False], 0]


@needs_browser
@pytest.mark.parametrize("options", [(), ("--force-dark-mode",)], ids=["light", "dark"])
def test_the_page_is_as_wide_as_a_phone_and_legible_in_both_themes(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    # Headless Chromium has no window narrower than 500 pixels: a frame has the width of a phone.
    script = """
        while (!document.documentElement.dataset.drawn) await pause(20);
        document.body.style.width = '390px';
        dispatchEvent(new Event('resize'));
        await pause(600);
        function light(text) {
            var parts = text.match(/[\\d.]+/g).slice(0, 3).map(function (one) { var part = one / 255;
                return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4); });
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; }
        function contrast(front, back) {
            var probe = document.body.appendChild(document.createElement('i'));
            probe.style.color = 'var(' + front + ')'; probe.style.backgroundColor = 'var(' + back + ')';
            var style = getComputedStyle(probe), a = light(style.color), b = light(style.backgroundColor);
            probe.remove();
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }
        var wide = Array.from(document.body.querySelectorAll('*')).filter(function (one) {
            return !one.closest('.grid, .chart') && one.getBoundingClientRect().right > 391
                && getComputedStyle(one).position !== 'absolute'; }).map(function (one) { return one.tagName + one.id; });
        return [wide, ['--page', '--panel', '--changed', '--new', '--gone'].map(function (back) { return contrast('--ink', back); }),
            contrast('--soft', '--page'), contrast('--link', '--page'), contrast('--on-open', '--open'), contrast('--on-closed', '--closed'),
            matchMedia('(prefers-color-scheme: dark)').matches];
    """  # noqa: E501 - a script
    link = f"#at={day(4)}&key=%7B%22table%22:%22s.customers%22,%22key%22:[%221%22]%7D"
    seen, _ = played(html(), tmp_path, script, link, options)

    assert seen[0] == []
    assert min([*seen[1], *seen[2:6]]) >= 4.5
    assert seen[6] == bool(options)


@needs_browser
def test_only_the_visible_rows_of_many_are_in_the_document(tmp_path: Path) -> None:
    rows = [version(key, day(1), None, "x") for key in range(20_000)]
    script = """
        var grid = document.querySelector('[role=table][aria-label="Rows of customers"]');
        var seen = [grid.getAttribute('aria-rowcount'), grid.querySelectorAll('.grid-row').length];
        grid.scrollTop = 30 * 15000; grid.dispatchEvent(new Event('scroll'));
        seen.push(grid.querySelector('.grid-row button').textContent, grid.querySelectorAll('.grid-row').length);
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(exported(rows=rows)), tmp_path, script)

    assert seen[0] == "20001"
    assert seen[1] < 40
    assert seen[2] == "14996"
    assert seen[3] < 40


@needs_browser
def test_lists_are_sorted_scrolled_and_printed_without_a_mouse(tmp_path: Path) -> None:
    rows = [
        version(key, day(1 + key % 3), None, [None, "", "b", "a"][key % 4], n=(key * 7) % 100)
        for key in range(1, 801)
    ]
    script = """
        var grid = document.querySelector('[role=table][aria-label="Rows of customers"]'), seen = {};
        function column(number, count) { return Array.from(grid.querySelectorAll('.grid-row')).slice(0, count || 5).map(function (row) { return row.children[number].textContent; }); }
        function press(key) { grid.dispatchEvent(new KeyboardEvent('keydown', { key: key, cancelable: true })); grid.dispatchEvent(new Event('scroll')); }
        function head(number) { return grid.querySelectorAll('[role=columnheader]')[number]; }
        function sort(number) { var button = head(number).querySelector('button'); button.focus(); button.click(); return document.activeElement === head(number).querySelector('button'); }
        seen.key = column(0);
        seen.focus = sort(2); seen.up = [column(2, 3), column(0, 3), head(2).getAttribute('aria-sort')];
        sort(2); seen.down = [column(2, 3), head(2).getAttribute('aria-sort'), location.hash];
        sort(2); seen.back = [column(0), head(2).getAttribute('aria-sort')];
        sort(1); seen.nulls = column(1, 1); sort(1); seen.texts = column(1, 1); sort(1);
        press('End'); seen.end = grid.querySelector('.grid-space').lastChild.children[0].textContent;
        press('Home'); press('PageDown'); press('ArrowDown'); seen.scrolled = grid.scrollTop > 200;
        press('Home'); seen.home = grid.scrollTop;
        dispatchEvent(new Event('beforeprint'));
        seen.printed = [grid.querySelectorAll('.grid-row').length, grid.querySelector('.grid-space').style.height, grid.dataset.notPrinted];
        dispatchEvent(new Event('afterprint'));
        seen.after = [grid.querySelectorAll('.grid-row').length < 60, grid.querySelector('.grid-space').style.height];
        var every = Array.from(document.querySelectorAll('button, input, select, summary, [role=table]')).filter(function (one) { return one.checkVisibility(); });
        seen.unreachable = every.filter(function (one) { one.focus(); return one.isConnected && document.activeElement !== one; }).map(function (one) { return one.outerHTML; });
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(exported(rows=rows)), tmp_path, script)

    by_n = sorted(range(1, 801), key=lambda key: ((key * 7) % 100, key))
    assert seen["key"] == ["1", "2", "3", "4", "5"]
    assert seen["focus"]
    assert seen["up"] == [["0", "0", "0"], [str(key) for key in by_n[:3]], "ascending"]
    assert seen["down"][:2] == [["99", "99", "99"], "descending"]
    assert "sort=s.customers+2+down" in seen["down"][2]
    assert seen["back"] == [["1", "2", "3", "4", "5"], None]
    assert (seen["nulls"], seen["texts"]) == (["NULL"], ["b"])
    assert (seen["end"], seen["scrolled"], seen["home"]) == ("800", True, 0)
    note = "The first 500 of 800 rows; CSV has all."
    assert seen["printed"] == [500, "15000px", note]
    assert seen["after"] == [True, "24000px"]
    assert seen["unreachable"] == []


@needs_browser
def test_the_page_fills_a_wide_screen_with_its_tables(tmp_path: Path) -> None:
    script = """
        function box(one) { return one.getBoundingClientRect(); }
        var panels = Array.from(document.querySelectorAll('#rows .panel'));
        return [innerWidth, document.documentElement.scrollWidth, panels.map(function (one) { return Math.round(box(one).top); }),
            Math.round(box(panels[1]).right - box(panels[0]).left)];
    """  # noqa: E501 - a script
    seen, _ = played(
        html(exported(), exported("contracts")), tmp_path, script,
        options=("--window-size=2560,1300",),
    )  # fmt: skip
    inner, wide, tops, width = seen

    assert inner >= 2500
    assert wide <= inner
    assert tops[0] == tops[1], "side by side"
    assert 2100 <= width <= 2200


@needs_browser
def test_many_days_are_bars_of_months_and_the_line_can_move_meanwhile(tmp_path: Path) -> None:
    rows = [version(key, day(1 + key), None, "x") for key in range(3_000)]
    script = """
        var label = function () { return Array.from(document.querySelectorAll('#change-chart text')).map(function (one) { return one.textContent; }); };
        var seen = [label().indexOf('changes per month') >= 0, document.getElementById('change-count').textContent];
        for (var move = 0; move < 20; move++) { window.explore.moveTo(window.explore.range()[move % 2]); await pause(5); }
        await pause(600);
        seen.push(document.getElementById('change-count').textContent.split(' ')[0]);
        return seen;
    """  # noqa: E501 - a script
    seen, _ = played(html(exported(rows=rows)), tmp_path, script)

    assert seen[0]
    assert seen[1].startswith("3,000 changes")
    assert seen[2] == "3,000"


def test_a_metastore_in_use_has_the_exit_code_of_the_page() -> None:
    """Derby's code is in the stack trace of the cause of dbt's error."""

    class InUseCursor:
        def execute(self, _: str) -> None:
            cause = RuntimeError("Unable to instantiate SessionHiveMetaStoreClient")
            cause._stackTrace = "ERROR XSDB6: Another instance of Derby"  # type: ignore[attr-defined]
            raise ValueError(str(cause)) from cause

    connection = SimpleNamespace(handle=SimpleNamespace(cursor=InUseCursor))
    connections = SimpleNamespace(get_thread_connection=lambda: connection)
    manifest = SimpleNamespace(build_flat_graph=lambda: None)
    with pytest.raises(MetastoreInUseError) as refused:
        DbtProject(SimpleNamespace(connections=connections), manifest).rows("select 1")
    assert refused.value.exit_code == 3


@pytest.mark.skipif(not which("node"), reason="no node on PATH")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_time_of_any_year_is_read_as_it_is_written(zone: str) -> None:
    """Also of the years 0 to 99, with which a browser's Date means 1900 to 1999."""
    texts = ["0001-01-02 00:00:00", "0099-12-31 23:59:59.5", "2024-02-29 12:00:00"]
    whole = asset("explore", "explore.js")
    code = whole.partition("// -- times ")[2].partition("// -- the view")[0]
    script = (
        f"var NULL = {{}}, state = {{zone: {json.dumps(zone)}}}; // {code}"
        f"console.log(JSON.stringify({json.dumps(texts)}.map(function (text) {{"
        " return positionText('time', parsePosition('time', text)); })));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == texts
