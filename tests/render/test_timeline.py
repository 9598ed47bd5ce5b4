"""Timelines, from rows to the page, without Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dbt_history.commit_log import read_record, recorded_key
from dbt_history.conventions import (
    KNOWN,
    Convention,
    ConventionError,
    detect_convention,
    from_settings,
    on_axis,
)
from dbt_history.docs.tables import position
from dbt_history.timeline.chart import ORANGE, batch_rows, lanes, svg, version_chart
from dbt_history.timeline.commits import (
    Commit,
    batches,
    identity,
    read_commit,
    with_arrivals,
)
from dbt_history.timeline.errors import TimelineError
from dbt_history.timeline.page import page
from dbt_history.timeline.table import Track, with_hidden_keys
from dbt_history.timeline.versions import absences, format_position, read_versions
from tests.oracle import convention as oracle
from tests.support.pages import Page, leaves_the_file

SECOND = 1_000_000
ORACLE = {
    "fivetran": oracle.FIVETRAN,
    "validity": oracle.VALIDITY,
    "naksha": oracle.NAKSHA,
    "dbt_snapshot": oracle.DBT_SNAPSHOT,
    "auto_cdc": oracle.AUTO_CDC,
}


def row(since: int, until: int | None, active: bool | None = None, **more: Any) -> dict[str, Any]:
    """A stored row of record 1; `v` is its only data column."""
    order, v, key = more.get("order", 0), more.get("v", "a"), more.get("key", ["1"])
    return {
        "key": key, "since": since, "until": until, "active": active, "order": order,
        "values": {"v": v, "_noted": str(since)},
    }  # fmt: skip


# One record in each convention: a, then b, deleted, inserted again as NULL. The half-open periods
# are the same in all of them.
STORED: dict[str, tuple[Convention, list[dict[str, Any]]]] = {
    "fivetran": (
        KNOWN["fivetran"],
        [
            row(SECOND, 2 * SECOND - 1000, False),
            row(2 * SECOND, 3 * SECOND - 1000, False, v="b"),
            row(4 * SECOND, KNOWN["fivetran"].open_end, True, v=None),
        ],
    ),
    "validity": (
        KNOWN["validity"],
        [
            row(SECOND, 2 * SECOND),
            row(2 * SECOND, 3 * SECOND, v="b"),
            row(4 * SECOND, None, v=None),
        ],
    ),
    "validity by number": (
        from_settings({"convention": "validity", "type": "bigint", "open_end": 2147483647}),
        [
            row(1 * SECOND, 2 * SECOND),
            row(2 * SECOND, 3 * SECOND, v="b"),
            row(4 * SECOND, 2147483647, v=None),
        ],
    ),
    "naksha": (
        KNOWN["naksha"],
        [
            row(1 * SECOND, 2 * SECOND, order=1),
            row(2 * SECOND, 3 * SECOND, order=2, v="b"),
            row(4 * SECOND, None, order=4, v=None),
        ],
    ),
    "dbt_snapshot": (
        from_settings({"convention": "dbt_snapshot", "open_end": "9999-12-31"}),
        [
            row(SECOND, 2 * SECOND),
            row(2 * SECOND, 3 * SECOND, v="b"),
            row(4 * SECOND, on_axis("9999-12-31", "timestamp"), v=None),
        ],
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_convention_equals_that_of_the_oracle(name: str) -> None:
    known, rules = KNOWN[name], ORACLE[name]
    names = (rules.start, rules.end, rules.active, rules.type)
    assert (known.start, known.end, known.active, known.type) == names
    assert (known.version_id or known.start) == rules.version_id
    gap = rules.gap
    assert known.gap == (gap // timedelta(microseconds=1) if isinstance(gap, timedelta) else gap)
    open_end = None if rules.open_end is None else on_axis(rules.open_end, rules.type)
    assert known.open_end == open_end


@pytest.mark.parametrize("name", STORED)
def test_every_convention_gives_the_same_picture(name: str) -> None:
    convention, rows = STORED[name]
    versions = read_versions(reversed(rows), convention)

    periods = [(version.since // SECOND, version.until, version.is_back) for version in versions]
    assert periods == [(1, 2 * SECOND, False), (2, 3 * SECOND, False), (4, None, True)]
    assert [version.changed for version in versions] == [
        None, {"v": ("a", "b")}, {"v": ("b", None)},
    ]  # fmt: skip
    assert [(hole.since, hole.until) for hole in absences(versions)] == [(3 * SECOND, 4 * SECOND)]


def test_a_deleted_fivetran_record_ends_after_its_last_millisecond() -> None:
    versions = read_versions([row(SECOND, 2 * SECOND, False)], KNOWN["fivetran"])

    assert versions[0].until == 2 * SECOND + 1000
    assert [hole.until for hole in absences(versions)] == [None]


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("fivetran", None), ("fivetran", False), ("validity", None), ("dbt_snapshot", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("end", "is_open"),
    [
        ("9998-12-31 23:59:59.999999", False),
        ("9999-01-01", True),
        ("9999-12-31 23:59:59", True),
        ("9999-12-31 23:59:59.999999", True),
    ],
)
def test_an_end_in_the_year_9999_is_open(
    name: str, active: bool | None, end: str, is_open: bool
) -> None:
    stored = row(SECOND, on_axis(end, "timestamp"), active)
    (version,) = read_versions([stored], KNOWN[name])
    assert (version.until is None) == is_open


@pytest.mark.parametrize(
    ("said", "end", "is_open"),
    [
        ({"type": "date"}, "9999-12-31", True),
        ({"type": "date"}, "9998-12-31", False),
        ({"type": "date", "open_end": "2099-12-31"}, "2099-12-31", True),
        ({"type": "bigint"}, 2**63 - 1, False),
        ({"open_end": 2147483647}, 2**63 - 1, True),
    ],
)
def test_an_open_end_depends_on_the_axis(said: dict[str, Any], end: Any, is_open: bool) -> None:
    convention = from_settings({"convention": "validity", **said})
    (version,) = read_versions([row(1, on_axis(end, convention.type))], convention)
    assert (version.until is None) == is_open


def test_a_convention_is_recognised_by_the_columns() -> None:
    assert detect_convention({"txn": "bigint", "txn_next": "bigint"}, "t") == KNOWN["naksha"]
    assert detect_convention({"valid_from": "bigint", "valid_to": "bigint"}, "t").type == "bigint"
    assert detect_convention({"valid_from": "date", "valid_to": "date"}, "t").type == "date"
    mirror = {"mod_time": "timestamp", "deleted": "boolean", "x_hx_id": "bigint"}
    assert detect_convention(mirror, "s.x_hx").version_id == "x_hx_id"
    events = {"_hist_event": "int", "_hist_time": "timestamp"}
    assert detect_convention(events, "t").name == "events"
    with pytest.raises(ConventionError, match="--convention"):
        detect_convention({"id": "bigint"}, "t")


@pytest.mark.parametrize(
    "settings",
    [{"convention": "nobody"}, {"start": "a"}, {"start": "a", "end": "b", "gap": "soon"}],
)
def test_an_impossible_convention_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConventionError):
        from_settings(settings)


def test_a_point_on_the_axis_is_formatted_for_people() -> None:
    assert format_position(on_axis("2024-03-03 12:00:00.25", "timestamp"), "timestamp") == (
        "2024-03-03 12:00:00.25"
    )
    assert format_position(on_axis("2024-03-03", "date"), "date") == "2024-03-03"
    assert (format_position(7, "bigint"), format_position(None, "bigint")) == ("7", "open")


def test_a_time_is_in_utc_unless_it_names_a_zone() -> None:
    noon = on_axis("2024-03-03 12:00:00", "timestamp")
    assert on_axis("2024-03-03T14:00:00+02:00", "timestamp") == noon
    assert on_axis("2024-03-03 12:00:00 UTC", "timestamp") == noon
    assert on_axis("2024-03-03 01:00:00+02:00", "date") == on_axis("2024-03-02", "date")


def test_a_year_is_written_with_four_digits_and_one_that_dates_do_not_have_as_a_number() -> None:
    first = on_axis("0001-01-01", "timestamp")
    assert format_position(first, "timestamp") == position(first, True) + " 00:00:00"
    assert position(first, True) == "0001-01-01"
    assert format_position(first - 1, "timestamp") == f"{first - 1} microseconds since 1970"
    assert format_position(3_000_000, "date") == "3000000 days since 1970"


COMMITS = [
    Commit(1, SECOND, "MERGE", 1, True, added=2),
    Commit(2, 2 * SECOND, "OPTIMIZE"),
    Commit(3, 3 * SECOND, "MERGE", 2, True, added=1, closed=1, removed=2),
]


def picture() -> Track:
    """Record 1: `a`, then `b`, which was late, then `c`; record 2, deleted."""
    rows = [
        row(SECOND, 2 * SECOND, v="a"),
        row(2 * SECOND, 3 * SECOND, v="<b>"),
        row(3 * SECOND, None, v="c"),
        row(SECOND, 2 * SECOND, key=["2"]),
    ]
    versions = read_versions(rows, KNOWN["validity"])
    everything = {identity(version) for version in versions}
    first = {one for one in everything if one[1] != 2 * SECOND}
    arrived = with_arrivals(versions, {1: first, 3: everything}, COMMITS)
    return Track("s.things", ("id",), KNOWN["validity"], tuple(arrived), tuple(COMMITS))


def test_a_version_is_late_if_a_later_one_was_committed_before_it() -> None:
    versions = picture().versions

    assert [version.arrived for version in versions] == ["batch 1", "batch 2", "batch 1", "batch 1"]
    assert [version.is_late for version in versions] == [False, True, False, False]


def test_batches_are_read_from_the_records_of_commits() -> None:
    entry = {
        "version": 3, "at": 5, "operation": "MERGE",
        "userMetadata": '{"dbt_history": "1", "model": "m", "batch": 2}',
        "operationMetrics": {"numTargetRowsInserted": "1", "numTargetRowsUpdated": "1",
                             "numTargetRowsDeleted": "2"},
    }  # fmt: skip
    assert read_commit(entry) == Commit(3, 5, "MERGE", 2, True, 1, 1, 2)
    assert not read_commit({**entry, "userMetadata": "{not json dbt_history"}).is_ours
    assert [commit.version for commit in batches(COMMITS)] == [1, 3]
    assert [(one["what"], one["rows"]) for one in batch_rows(COMMITS)][3:] == [
        ("added", 1), ("closed", 1), ("removed", -2),
    ]  # fmt: skip


def test_the_key_of_a_log_is_that_of_its_newest_record() -> None:
    others = [None, "by hand", '{"user": "ann"}', '{"dbt_history": "1", "batch": 4}']
    mirror = '{"dbt_history": "1", "about": {"hx": {"id": "a_hx_id", "key": ["a", "b"]}}}'
    events = '{"dbt_history": "1", "about": {"events": {"key": ["id"], "not_null": []}}}'
    assert recorded_key(map(read_record, [*others, mirror, events])) == ("a", "b")
    assert recorded_key(map(read_record, [events])) == ("id",)
    assert recorded_key(map(read_record, others)) == ()


def test_the_timeline_shows_each_version_each_deletion_and_late_versions() -> None:
    drawn = svg(version_chart([picture()]))

    for text in ("things · 1", "things · 2", ">a<", "&lt;b&gt;", ">c<", "deleted"):
        assert text in drawn
    assert drawn.count(f'fill="{ORANGE}"') == 1


def test_the_page_is_self_contained() -> None:
    html = page([picture()])
    shown = Page(html)

    assert shown.fetched == []
    assert [link for link in shown.links if leaves_the_file(link)] == []
    assert "default-src 'none'" in html
    assert "<b>" not in html.split("<script")[0]
    rows = [found for found in shown.all("tr") if "data-since" in found]
    assert [(found["data-since"], found["data-until"]) for found in rows][:3] == [
        ("1000.0", "2000.0"), ("2000.0", "3000.0"), ("3000.0", ""),
    ]  # fmt: skip
    assert shown.text.count("◆ late") == 1
    assert "v: a → <b>" in shown.text
    assert "window.vegaEmbed" in html


def test_data_columns_may_have_the_names_that_the_chart_uses() -> None:
    rows = [row(SECOND, 2 * SECOND), row(2 * SECOND, None)]
    names = ("lane", "since", "until", "state", "late", "table", "values", "changed", "a.b: 'c'")
    for one in rows:
        one["values"] = dict.fromkeys(names, "mine")
    versions = read_versions(rows, KNOWN["validity"])
    html = page([Track("s.things", ("id",), KNOWN["validity"], tuple(versions), ())])

    found = [one for one in Page(html).all("tr") if "data-since" in one]
    assert [(one["data-since"], one["data-until"]) for one in found] == [
        ("1000.0", "2000.0"), ("2000.0", ""),
    ]  # fmt: skip
    assert "things · 1" in Page(html).text


def test_a_hidden_key_has_numbers_in_place_of_its_values_and_null_is_not_the_text() -> None:
    rows = [row(SECOND, None, key=[key, "1"]) for key in ("ann", "bob", None)]
    versions = read_versions(rows, KNOWN["validity"])
    key = ("mail", "id")
    track = Track("`s`.`a.b`", key, KNOWN["validity"], tuple(versions), (), hidden=("mail",))
    found = with_hidden_keys(track, versions)

    assert {one.key for one in found} == {(f"hidden {n}", "1") for n in (1, 2, 3)}
    assert lanes([track]) == ["a.b · [NULL], 1", "a.b · ann, 1", "a.b · bob, 1"]


def test_tables_of_versions_do_not_share_an_axis_with_tables_of_times() -> None:
    numbers = Track("n", ("id",), KNOWN["naksha"], picture().versions, ())
    with pytest.raises(TimelineError, match="draw them separately"):
        version_chart([picture(), numbers])
