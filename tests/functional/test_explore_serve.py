"""`dbt-history explore --serve`: its page shows what the page in a file shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import SparkSession

from dbt_history.explore.answers import Answers, QuestionError, Served
from dbt_history.explore.export import compact, read_table
from dbt_history.explore.page import page
from dbt_history.explore.server import App
from dbt_history.explore.tables import HistoryTable
from tests.functional.test_explore import ViewProject
from tests.support.browser import needs_browser, opened, played
from tests.support.rendering import Renderer
from tests.support.served import listening, played_by_server

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"
# Record 1 moves twice, 2 is deleted and comes back, 3 is deleted, 4 is new, 5 has hostile values.
CUSTOMERS = f"""
    select * from values
        (1L, 'Bonn', 1.5, timestamp'2024-01-01 00:00:00 UTC', timestamp'2024-01-03 00:00:00 UTC'),
        (1L, 'Rome', 1.5, timestamp'2024-01-03 00:00:00 UTC', timestamp'2024-01-05 12:00:00 UTC'),
        (1L, cast(null as string), 2.5, timestamp'2024-01-05 12:00:00 UTC', null),
        (2L, 'Lima', 3.0, timestamp'2024-01-01 00:00:00 UTC', timestamp'2024-01-03 00:00:00 UTC'),
        (2L, 'Lima', 3.0, timestamp'2024-01-08 00:00:00 UTC', null),
        (3L, 'Oslo', 4.0, timestamp'2024-01-01 00:00:00 UTC', timestamp'2024-01-04 00:00:00 UTC'),
        (10L, 'Oslo', 4.0, timestamp'2024-01-06 00:00:00 UTC', null),
        (5L, '{HOSTILE.replace("'", chr(92) + "'")}', 0.0, timestamp'2024-01-02 00:00:00 UTC', null)
        as rows(id, city, amount, valid_from, valid_to)
"""
CONTRACTS = """
    select * from values
        ('a', 1L, 'ann', timestamp'2024-01-02 00:00:00 UTC', timestamp'2024-01-06 00:00:00 UTC'),
        ('a', 2L, 'bob', timestamp'2024-01-06 00:00:00 UTC', null),
        ('b c', 1L, cast(null as string), timestamp'2024-01-04 00:00:00 UTC', null)
        as rows(no, id, mod_user, valid_from, valid_to)
"""
NUMBERED = """
    select * from values
        (1L, 'x', 10L, 20L), (1L, 'y', 20L, 9223372036854775807L), (2L, 'x', 15L, 18L)
        as rows(n, v, s, e)
"""
LOG = """
    select * from values
        (1L, 1L, 'Bonn', 'ann', false, timestamp'2024-01-01 00:00:00 UTC'),
        (2L, 1L, 'Rome', 'bob', false, timestamp'2024-01-04 00:00:00 UTC'),
        (3L, 1L, 'Rome', 'ann', true, timestamp'2024-01-07 00:00:00 UTC'),
        (4L, 2L, 'Lima', 'ann', false, timestamp'2024-01-05 00:00:00 UTC')
        as rows(served_log_hx_id, id, city, mod_user, deleted, mod_time)
"""
MAX_BIGINT = 2**63 - 1
# Of the browser's own clock, which does not run while it waits for an answer.
LONG = ("--virtual-time-budget=120000",)

# Waits until no list waits for the server. In a file nothing does.
SETTLED = """
    async function settled() {
        for (var quiet = 0; quiet < 12; quiet++) {
            await pause(50);
            if (document.querySelector('[aria-busy=true]') || /^Reading/.test(document.getElementById('status').textContent)
                || /^Reading/.test(document.getElementById('version-count').textContent)) quiet = 0;
        }
    }
    function set(name, value, event) { var one = document.getElementById(name); one.value = value; one.dispatchEvent(new Event(event || 'change')); }
    function lines(host) { return Array.from(host.querySelectorAll('.grid-row')).map(function (row) {
        return [row.className].concat(Array.from(row.children).map(function (one) { return one.textContent + (one.classList.contains('changed') ? '|' + one.title : ''); })); }); }
    function rows() { return Array.from(document.querySelectorAll('#rows .panel')).map(function (one) { return [one.querySelector('h3').textContent, lines(one)]; }); }
    function options(name) { return Array.from(document.getElementById(name).options).map(function (one) { return one.textContent; }).sort(); }
    function changes() { return [document.getElementById('change-count').textContent, lines(document.getElementById('change-rows')), options('user'), options('column')]; }
"""  # noqa: E501 - a script


def history_table(
    spark: SparkSession, name: str, sql: str, key: str, reader: Any, **more: Any
) -> HistoryTable:
    spark.sql(sql).createOrReplaceTempView(name)
    columns = dict(spark.table(name).dtypes)
    return HistoryTable(name, "v", name, "versions", (key,), reader, "x", columns, **more)


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> list[HistoryTable]:
    by_number = {"start": "s", "end": "e", "type": "bigint", "open_end": MAX_BIGINT}
    hx = {"convention": "hx", "key": ["id"], "id": "served_log_hx_id"}
    return [
        history_table(spark, "served_customers", CUSTOMERS, "id", "validity"),
        history_table(spark, "served_contracts", CONTRACTS, "no", "validity"),
        history_table(spark, "served_numbered", NUMBERED, "n", by_number),
        replace(history_table(spark, "served_log_hx", LOG, "id", hx), kind="mirror"),
    ]


def server(project: ViewProject, tables: list[HistoryTable]) -> App:
    def at_once(question: Callable[[], Any]) -> Any:
        return question()

    answers = Answers(project, [Served.of(project, table) for table in tables])
    return App(answers, at_once)  # type: ignore[arg-type]


SHORT = """
    set('at', '2024-01-04'); set('than', '2024-01-02 12:00'); await settled(); seen.than = rows(); seen.changes = changes();
    set('at', '2024-01-02'); set('than', '2024-01-09'); set('find', '1', 'input'); await pause(200); await settled();
    seen.back = rows(); seen.backChanges = changes();
    document.getElementById('only').click(); set('find', '', 'input'); await pause(200); await settled(); seen.only = rows();
    document.querySelector('#rows button.key').click(); await settled();
    seen.versions = lines(document.getElementById('version-rows'));
"""  # noqa: E501 - a script
MORE = """
    await settled(); seen.last = rows();
    set('at', '2024-01-04'); await settled(); seen.at = rows();
    set('than', '2024-01-02 12:00'); set('find', '1', 'input'); set('match', 'exact'); await pause(200); await settled();
    seen.exact = rows(); seen.exactChanges = changes();
    set('find', 'city=Oslo', 'input'); await pause(200); await settled(); seen.column = rows();
    set('find', 'city=NULL', 'input'); set('at', '2024-01-09'); await pause(200); await settled(); seen.nothing = rows();
    set('find', '', 'input'); set('user', 'ann'); await pause(200); await settled(); seen.user = changes();
    set('user', ''); set('column', 'city'); await settled(); seen.byColumn = changes(); set('column', '');
    document.querySelectorAll('.sort')[1].click(); await settled(); seen.up = rows();
    document.querySelectorAll('.sort')[1].click(); await settled(); seen.down = rows();
    document.querySelectorAll('.sort')[4].click(); await settled(); seen.byEnd = rows();
    document.querySelectorAll('.sort')[4].click(); document.querySelectorAll('.sort')[4].click();
    set('than', ''); set('at', '2024-01-03'); await settled();
    document.getElementById('forth').click(); await settled(); seen.forth = document.getElementById('at').value;
    document.getElementById('back').click(); await settled(); document.getElementById('back').click(); await settled();
    seen.stepBack = document.getElementById('at').value;
    if (document.getElementById('axis').options.length > 1) {
        set('axis', 'number'); await settled(); set('at', '15'); set('than', '19'); await settled();
        seen.numbers = [rows(), changes()];
    }
"""  # noqa: E501 - a script


@needs_browser
@pytest.mark.parametrize(
    ("names", "script", "zone"),
    [
        pytest.param(("customers",), SHORT, "UTC", id="a version table"),
        pytest.param(
            ("customers", "contracts"), SHORT, "UTC", id="two tables", marks=pytest.mark.thorough
        ),
        pytest.param(
            ("customers", "numbered"), MORE, "UTC", id="numbers", marks=pytest.mark.thorough
        ),
        pytest.param(
            ("log_hx", "contracts"), MORE, "Asia/Tokyo", id="log", marks=pytest.mark.thorough
        ),
    ],
)
def test_the_served_page_shows_what_the_page_in_a_file_shows(
    call: Renderer,
    spark: SparkSession,
    tables: list[HistoryTable],
    tmp_path: Path,
    names: tuple[str, ...],
    script: str,
    zone: str,
) -> None:
    project = ViewProject(call, spark)
    chosen = [table for table in tables if table.name.removeprefix("served_") in names]
    file = page(compact([read_table(project, table) for table in chosen], "p", ""))
    script = f"{SETTLED} var seen = {{}}; set('zone', '{zone}'); {script} return seen;"
    by_file, _ = played(file, tmp_path, script, options=LONG)
    by_server, shown = played_by_server(server(project, chosen), tmp_path, script, LONG)

    assert list(by_server) == list(by_file)
    for what, expected in by_file.items():
        assert by_server[what] == expected, what
    # So that the comparison is not of nothing with nothing.
    if "than" in by_file:
        assert "is-new" in json.dumps(by_file["only"])
        assert "is-gone" in json.dumps(by_file["back"])
        assert len(by_file["versions"]) == (3 if len(names) == 1 else 5)
        assert by_file["changes"][1]
    else:
        assert by_file["forth"] > "2024-01-03"
        assert len(by_file["at"][0][1]) == (2 if "customers" in names else 1)
    assert "numbers" in by_file or "numbered" not in names
    assert "onerror" not in {name for _, found in shown.tags for name in found}


def test_what_is_hidden_is_in_no_answer_and_cannot_be_searched(
    call: Renderer, spark: SparkSession
) -> None:
    project = ViewProject(call, spark)
    names = frozenset({"id", "city"})
    table = history_table(spark, "served_hidden", CUSTOMERS, "id", "validity", hidden=names)
    answers = Answers(project, [Served.of(project, table)])
    at, than = 1_704_931_200_000_000, 1_704_153_600_000_000
    rows = {"ask": "rows", "table": "v.served_hidden", "at": at, "counts": True}

    found = answers.answer(rows)
    keys = found["slice"]["keys"]
    made = [
        found,
        answers.answer({**rows, "than": than}),
        answers.answer(
            {"ask": "versions", "table": rows["table"], "key": keys[0], "tables": [rows["table"]]}
        ),
        answers.answer(
            {"ask": "changes", "tables": [rows["table"]], "from": than, "to": at, "counts": True}
        ),
    ]
    for word in ("Bonn", "Rome", "Lima", "Oslo", "city"):
        assert word not in json.dumps(made).replace('"hidden": ["city", "id"]', ""), word
    assert all(key[0].startswith("hidden ") and len(key[0]) == 23 for key in keys)
    assert len(made[2]["tables"]["v.served_hidden"]["of"]) in (1, 2, 3)
    assert {one["key"][0] for one in made[3]["changes"]} >= {key[0] for key in keys[1:]} - {None}
    for search in ("city=Lima", "id=1", "1"):
        assert answers.answer({**rows, "find": search})["count"] == 0, search
    assert answers.answer({**rows, "find": keys[0][0]})["count"] == 1


def test_answers_are_the_same_with_and_without_ansi_mode(
    call: Renderer, spark: SparkSession, tables: list[HistoryTable]
) -> None:
    project = ViewProject(call, spark)
    table, at, than = "v.served_customers", 1_704_931_200_000_000, 1_704_153_600_000_000
    rows = {"ask": "rows", "table": table, "at": at, "counts": True}
    questions: list[dict[str, Any]] = [
        {**rows, "than": than},
        {**rows, "than": than, "only": True},
        {**rows, "find": "city=Oslo, id=10", "match": "exact"},
        {"ask": "versions", "table": table, "key": ["2"], "tables": [table]},
        {"ask": "changes", "tables": [table], "from": than, "to": at, "counts": True},
        {"ask": "changes", "tables": [table], "from": than, "to": at, "find": "2"},
        {"ask": "step", "tables": [table], "at": than, "by": 1},
    ]
    answers = Answers(project, [Served.of(project, one) for one in tables])
    before = str(spark.conf.get("spark.sql.ansi.enabled"))
    made = {}
    try:
        for ansi in ("true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            made[ansi] = [answers.answer(question) for question in questions]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)

    for question, strict, lenient in zip(questions, made["true"], made["false"]):
        assert strict == lenient, question
    listed = [(one["what"], one["key"][0]) for one in made["false"][4]["changes"]]
    assert sorted(listed) == [
        ("delete", "2"), ("delete", "3"), ("insert", "10"), ("insert", "2"), ("insert", "5"),
        ("update", "1"), ("update", "1"),
    ]  # fmt: skip
    assert made["false"][4]["total"] == len(listed)


def test_the_user_of_a_logs_deletion_is_the_user_of_its_row(
    call: Renderer, spark: SparkSession, tables: list[HistoryTable]
) -> None:
    """Record 1: bob wrote the version that ann deleted. Unknown if the column is hidden.

    A column of the main table whose name is the user's in other tables is data.
    """
    project, log = ViewProject(call, spark), tables[3]
    books = history_table(
        spark, "served_books", f"select 'zoe' as author, * from ({LOG})", "id", log.reader
    )
    books = replace(books, kind="mirror")
    ask = {"ask": "changes", "tables": ["v.served_log_hx"], "from": 0, "to": 2 * 10**15,
           "counts": True}  # fmt: skip

    hidden = replace(books, hidden=frozenset({"mod_user"}))
    for table, who in ((log, "ann"), (books, "ann"), (hidden, None)):
        ask["tables"] = [f"v.{table.name}"]
        answers = Answers(project, [Served.of(project, table)])
        (deletion,) = (one for one in answers.answer(ask)["changes"] if one["what"] == "delete")
        found = read_table(project, table)
        assert compact([found], "p", "")["tables"][0]["who"] == ("mod_user" if who else None)
        assert (deletion["key"], {row.ended_by for row in found.rows}) == (
            ["1"], {who, "bob", None} if who else {None},
        )  # fmt: skip
        users = dict(answers.answer(ask)["users"])
        assert users == ({"ann": 3, "bob": 1} if who else {"unknown": 4})
        of_ann = answers.answer({**ask, "user": "ann"})["changes"]
        assert [one["what"] for one in of_ann] == (["insert", "insert", "delete"] if who else [])


def test_a_tombstone_is_no_version(call: Renderer, spark: SparkSession) -> None:
    rows = """
        select * from values
            (1L, 'x', timestamp'2024-01-01 00:00:00 UTC', cast(null as timestamp)),
            (2L, 'x', timestamp'2024-01-01 00:00:00 UTC', timestamp'2024-01-01 00:00:00 UTC'),
            (2L, null, timestamp'2024-01-02 00:00:00 UTC', timestamp'2024-01-02 00:00:00 UTC')
            as rows(id, v, valid_from, valid_to)
    """
    project = ViewProject(call, spark)
    table = history_table(spark, "served_tombstones", rows, "id", "validity")
    (head,) = Answers(project, [Served.of(project, table)]).about()

    assert head["count"] == len(read_table(project, table).rows) == 2


@needs_browser
def test_a_print_waits_for_the_rows_that_the_server_has(
    call: Renderer, spark: SparkSession
) -> None:
    """Pages have 100 rows: without waiting the second one would be missing."""
    rows = """
        select id, 'x' as v, timestamp'2024-01-01 00:00:00 UTC' as valid_from,
            if(id < 120, timestamp'2024-01-03 00:00:00 UTC', null) as valid_to
        from range(270)
    """
    project = ViewProject(call, spark)
    table = history_table(spark, "served_print", rows, "id", "validity")
    app, place = server(project, [table]), "#at=1704412800000000&than=1704153600000000"
    with listening(app, "return 0;") as address, opened(address) as page:
        page.goto(page.url + place)
        page.reload()
        page.wait_for_selector("html[data-ready]")
        page.focus("#print")
        for prints, key in enumerate(("Enter", "Control+P"), 1):
            page.keyboard.press(key)
            page.wait_for_selector(f"html[data-prints='{prints}']")
            printed = {name: (count, note) for name, count, note in page.evaluate("printed")}
            # 150 rows and 120 that only the second date has; 120 changes.
            assert printed["Rows of served_print"] == (270, "")
            assert printed["Changes"] == (120, "")


def test_questions_are_checked_and_their_texts_are_never_sql(
    call: Renderer, spark: SparkSession, tables: list[HistoryTable]
) -> None:
    project = ViewProject(call, spark)
    answers = Answers(project, [Served.of(project, table) for table in tables[:2]])
    rows = {"ask": "rows", "table": "v.served_customers", "at": "1704931200000000"}

    for wrong in (
        {**rows, "table": "v.other"}, {**rows, "at": "now()"}, {**rows, "first": -1},
        {**rows, "zone": "UTC' or '1"}, {**rows, "sort": {"column": 99}},
        {"ask": "versions", "table": rows["table"], "key": [], "tables": []},
        {"ask": "versions", "table": rows["table"], "key": ["1"], "tables": ["v.other"]},
        {"ask": "step", "at": "1", "by": 1, "tables": None},
    ):  # fmt: skip
        with pytest.raises(QuestionError):
            answers.answer(wrong)
    for text in ("' or '1'='1", "\\' or 1=1 -- ", "id=1' or '1", "no=\\"):
        assert answers.answer({**rows, "find": text, "counts": True})["count"] == 0, text
    found = answers.answer(
        {"ask": "versions", "table": rows["table"], "key": ["1 or 1=1"], "tables": [rows["table"]]}
    )
    assert found["tables"]["v.served_customers"]["of"] == []


@pytest.mark.parametrize("by_join", [False, True], ids=["keys named", "keys joined"])
def test_a_page_has_the_rows_of_two_dates(
    call: Renderer,
    spark: SparkSession,
    tables: list[HistoryTable],
    by_join: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2024-01-04 and 2024-01-02 12:00: 1 moved, 2 and 3 are gone, 5 is as it was."""
    if by_join:
        monkeypatch.setattr("dbt_history.explore.answers.MAX_KEYS", 0)
    answers = Answers(ViewProject(call, spark), [Served.of(ViewProject(call, spark), tables[0])])
    ask = {"ask": "rows", "table": "v.served_customers", "at": 1_704_326_400_000_000,
           "than": 1_704_196_800_000_000, "counts": True}  # fmt: skip

    def seen(**more: Any) -> tuple[int, list[tuple[str, str | None]]]:
        """How many, and the key and city of each row and of its predecessor."""
        found = answers.answer({**ask, **more})
        made = found["slice"]
        city = made["cells"][0]

        def of(row: int) -> tuple[str, str | None]:
            place = city["places"][row]
            return made["keys"][made["of"][row]][0], None if place < 0 else city["values"][place]

        pairs = found["rows"]
        return found["count"], [of(row) for pair in pairs for row in pair if row >= 0]

    hostile = ("5", HOSTILE)
    assert seen() == (2, [("1", "Rome"), ("1", "Bonn"), hostile, hostile])
    assert seen(only=True) == (1, [("1", "Rome"), ("1", "Bonn")])
    assert seen(part="gone") == (2, [("2", "Lima"), ("3", "Oslo")])
    assert seen(part="gone", find="3") == (1, [("3", "Oslo")])
    down = {"column": 1, "down": True}
    assert seen(sort=down) == (2, [("1", "Rome"), ("1", "Bonn"), hostile, hostile])
    assert seen(sort={"column": 1}) == (2, [hostile, hostile, ("1", "Rome"), ("1", "Bonn")])
    assert seen(part="gone", sort=down) == (2, [("3", "Oslo"), ("2", "Lima")])
    assert seen(count=1)[0] == 2
    assert seen(than=ask["at"], only=True) == (0, [])


def test_a_null_that_moves_to_another_column_is_a_change(
    call: Renderer, spark: SparkSession
) -> None:
    """A hash alone skips NULL: (NULL, 'a') and ('a', NULL) have the same one."""
    sql = """
        select * from values
            (1L, cast(null as string), 'a', 10L, 20L), (1L, 'a', cast(null as string), 20L, 99L),
            (2L, 'b', 'b', 10L, 20L), (2L, 'b', 'b', 20L, 99L)
            as rows(n, v, w, s, e)
    """
    reader = {"start": "s", "end": "e", "type": "bigint", "open_end": MAX_BIGINT}
    table = history_table(spark, "served_nulls", sql, "n", reader)
    project = ViewProject(call, spark)
    answers = Answers(project, [Served.of(project, table)])

    found = answers.answer(
        {"ask": "rows", "table": "v.served_nulls", "at": 20, "than": 10, "only": True,
         "counts": True}
    )  # fmt: skip
    assert (found["count"], found["slice"]["keys"]) == (1, [["1"]])


class CleanedProject(ViewProject):
    """The history before 2024-01-03 was cleaned."""

    def call(self, macro: str, **arguments: Any) -> Any:
        if macro == "_not_below_retention_horizon":
            point = arguments["point"]
            horizon = "timestamp'2024-01-03 00:00:00 UTC'"
            return f"(select if({point} < {horizon}, raise_error('was cleaned'), true))"
        return super().call(macro, **arguments)


@pytest.mark.parametrize(
    "more",
    [{}, {"than": 1_704_196_800_000_000}, {"than": 1_704_196_800_000_000, "only": True},
     {"than": 1_704_196_800_000_000, "part": "gone"}],
    ids=["as of", "second date", "only changed", "only at the second date"],
)  # fmt: skip
def test_a_date_below_the_horizon_is_an_error(
    call: Renderer, spark: SparkSession, tables: list[HistoryTable], more: dict[str, Any]
) -> None:
    project = CleanedProject(call, spark)
    answers = Answers(project, [Served.of(project, tables[0])])
    at, below = 1_704_326_400_000_000, 1_704_196_800_000_000
    ask = {"ask": "rows", "table": "v.served_customers", "at": at if more else below, **more}

    with pytest.raises(SparkRuntimeException, match="was cleaned"):
        answers.answer(ask)
    allowed = {"than": at} if "than" in more else {}
    answers.answer({**ask, **allowed, "at": at})  # no error
