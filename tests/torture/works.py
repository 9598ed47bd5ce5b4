"""What is interrupted: for each writer a table before, its job, and what must be true after it.

Each work draws its data from a seed. `check` gets the rows after the job was repeated in another
process; it returns what is wrong.

    before ── job ──────────┬──────▶ (never ends)
                            │ copy of the folder = SIGKILL here
                            └──▶ the same job once more ──▶ check
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from dbt_history.landing.writer import RequestWriter
from tests.oracle.convention import FIVETRAN, VALIDITY_BIGINT
from tests.oracle.history_batch import apply_batch
from tests.oracle.mirrors import Link, Main, mirror
from tests.oracle.periods import as_of
from tests.oracle.random_histories import DATA_COLUMNS, KEY, History, merge, random_history, tag
from tests.property.test_mirrors import MirroredTables
from tests.support.landing import COLUMNS as LANDED
from tests.support.landing import END, HEADER, upserts
from tests.support.project import SCHEMA
from tests.support.tables import BOOKKEEPING, as_counter, column_types, select_of
from tests.torture.workers import Answer, Job, Rows

Problems = list[str]
VERSIONS = {"convention": "validity", "type": "bigint"}
COLUMNS = (*KEY, *DATA_COLUMNS, *FIVETRAN.columns())
TYPES = column_types(COLUMNS, FIVETRAN) | {"amount": "bigint"}


@dataclass(frozen=True)
class Work:
    """A writer's work.

    before  makes the tables
    job     is interrupted, and repeated
    check   the answer to the repeated job → problems
    """

    before: Job
    job: Job
    check: Callable[[Answer], Problems]


def model(sql: str, **config: Any) -> str:
    settings = ", ".join(f"{name}={value!r}" for name, value in config.items())
    return f"{{{{ config({settings}) }}}}\n\n{sql}\n"


def dbt(*arguments: str) -> dict[str, Any]:
    return {"dbt": list(arguments)}


def operation(name: str, **arguments: Any) -> dict[str, Any]:
    return dbt("run-operation", name, "--args", json.dumps(arguments))


def values(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> str:
    """Rows as a SELECT; a missing cell is NULL."""
    return select_of([[row.get(name) for name in types] for row in rows], types)


def differences(what: str, got: Rows, expected: Rows, columns: Iterable[str]) -> Problems:
    """Rows are compared as text, as the worker sends them."""
    listed = list(columns)

    def shown(rows: Rows) -> Counter[str]:
        texts = [
            {name: None if row.get(name) is None else str(row[name]) for name in listed}
            for row in rows
        ]
        return as_counter(texts, listed)

    there, wanted = shown(got), shown(expected)
    lost = [f"{what}: lost {row}" for row in wanted - there]
    return lost + [f"{what}: unexpected {row}" for row in there - wanted]


def failed(answer: Answer) -> Problems:
    return [f"the repeated job failed: {error}" for error in answer.outcomes if error]


# History tables.


def a_history(choice: random.Random, batches: int = 5) -> History:
    """Two random histories in one table, malformed batches among them."""
    histories = [
        tag(
            random_history(
                choice.randrange(10**9), FIVETRAN, choice.choice(["wild", "well_formed"]),
                keys=2, batches=batches,
            ),
            number,
        )
        for number in range(2)
    ]  # fmt: skip
    return merge(histories)


def history_model(history: History, batches: int | None) -> str:
    """The model of a history's first batches, each with its number."""
    rows = [
        {**row, "_batch": number}
        for number, batch in enumerate(history.batches[:batches], 1)
        for row in batch
    ]
    settings = {"convention": "fivetran", "max_deleted_share": None}
    return model(
        values(rows, {**BOOKKEEPING, **TYPES}),
        materialized="history_batch",
        unique_key=list(KEY),
        meta={"history": settings},
    )


def after(history: History) -> Rows:
    """The table after all batches."""
    table = history.initial
    for batch in history.batches:
        table = apply_batch(table, batch, KEY, FIVETRAN).table
    return table


CONTENT = {"h": f"select * from {SCHEMA}.h", "log": f"describe history {SCHEMA}.h"}


def doubled_batches(log: Rows) -> Problems:
    """The batches that two commits hold since the table's last reset."""
    found: Counter[int] = Counter()
    for commit in sorted(log, key=lambda commit: int(commit["version"])):
        if commit["operation"] in ("RESTORE", "TRUNCATE"):
            found.clear()
        record = json.loads(commit["userMetadata"] or "{}")
        # The record of a rewind has no batch number.
        if record.get("batch") is not None:
            found.update(range(record.get("first_batch", record["batch"]), record["batch"] + 1))
    return [f"batch {number} applied {n} times" for number, n in found.items() if n > 1]


def check_history(history: History, answer: Answer) -> Problems:
    return [
        *differences("h", answer.rows["h"], after(history), COLUMNS),
        *doubled_batches(answer.rows["log"]),
    ]


def run_all(history: History) -> Job:
    files = {"models/h.sql": history_model(history, None)}
    return Job([dbt("run", "--select", "h")], files, CONTENT)


def batches(choice: random.Random) -> Work:
    """`history_batch` on a table that has the first batches already."""
    history = a_history(choice)
    # A history of one batch begins with an empty table.
    last = len(history.batches) - 1
    first = choice.randint(min(1, last), last)
    adopted = {"sql": f"create table {SCHEMA}.h using delta as {values(history.initial, TYPES)}"}
    before = Job(
        [*([adopted] if history.initial else []), dbt("run", "--select", "h")],
        {"models/h.sql": history_model(history, first)},
    )
    job = run_all(history)
    return Work(before, job, lambda answer: failed(answer) + check_history(history, answer))


def creation(choice: random.Random) -> Work:
    """The first run of a `history_batch` model."""
    drawn = a_history(choice)
    history = History(drawn.key, drawn.convention, [], drawn.batches)
    job = run_all(history)
    return Work(Job([]), job, lambda answer: failed(answer) + check_history(history, answer))


# Logs.


def append(choice: random.Random) -> Work:
    """`history_append` of numbered batches."""
    rows = [{"id": n, "v": f"v{n}", "_batch": 1 + n // 3} for n in range(choice.randint(6, 15))]
    types = {"id": "bigint", "v": "string", "_batch": "bigint"}
    queries = {"log": f"select * from {SCHEMA}.log"}

    def text(up_to: int) -> str:
        taken = [row for row in rows if int(str(row["_batch"])) <= up_to]
        return model(values(taken, types), materialized="history_append")

    run = [dbt("run", "--select", "log")]
    before = Job(run, {"models/log.sql": text(choice.randint(1, 2))})
    job = Job(run, {"models/log.sql": text(len(rows))}, queries)
    return Work(
        before if choice.random() < 0.7 else Job([]),
        job,
        lambda answer: failed(answer) + differences("log", answer.rows["log"], rows, ("id", "v")),
    )


class Statements:
    """Collects statements instead of running them."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def sql(self, statement: str) -> None:
        self.made.append(statement)


MAINS = (Main("a", ("id",)), Main("b", ("id",), (Link(("a_id",), "a", "a_hx_id"),)))


def mirrors(choice: random.Random) -> Work:
    """Two `_hx` mirrors, one with a reference to the other, of random changes."""
    statements = Statements()
    tables = MirroredTables(statements, SCHEMA, choice)  # type: ignore[arg-type]
    created = len(statements.made)
    for _ in range(choice.randint(0, 3)):
        tables.step()
    earlier = len(statements.made)
    for _ in range(choice.randint(2, 5)):
        tables.step()
    steps = [{"sql": text} for text in statements.made]
    files = {
        f"models/{name}_hx.sql": model(
            f"select * from {{{{ dbt_history.hx_rows(api.Relation.create(schema='{SCHEMA}',"
            f" identifier='{name}'), 'id'{references}) }}}}",
            materialized="history_append",
        )
        for name, references in (
            ("a", ""),
            (
                "b",
                ", references=[{'column': 'a_id', 'key': 'id', 'name': 'a_hx_id',"
                " 'history': ref('a_hx')}]",
            ),
        )
    }
    run = dbt("run", "--select", "a_hx", "b_hx")
    # The first run is on empty tables: it takes present rows, not how they came about.
    before = Job([*steps[:created], run, *steps[created:earlier], run, *steps[earlier:]], files)
    queries = {f"{name}_hx": f"select * from {SCHEMA}.{name}_hx" for name in "ab"}
    expected = mirror(MAINS, [commit for commit in tables.commits if commit.table in "ab"])

    def check(answer: Answer) -> Problems:
        found = failed(answer)
        for name in "ab":
            columns = list(expected[name][0]) if expected[name] else ["id"]
            found += differences(f"{name}_hx", answer.rows[f"{name}_hx"], expected[name], columns)
        return found

    return Work(before, Job([run], files, queries), check)


# Operations on a table of versions (id, v, valid_from, valid_to).

VERSION_TYPES = {"id": "string", "v": "string", "valid_from": "bigint", "valid_to": "bigint"}


def versions(choice: random.Random) -> Rows:
    rows: Rows = []
    for key in "abcd":
        times = sorted(choice.sample(range(1, 20), choice.randint(1, 5)))
        ends = [*times[1:], choice.choice([None, 25])]
        rows += [
            {"id": key, "v": f"{key}{start}", "valid_from": start, "valid_to": end}
            for start, end in zip(times, ends, strict=True)
        ]
    return rows


def state(rows: Rows, at: int) -> dict[str, str]:
    """The value of each record at a point."""
    return {row["id"]: row["v"] for row in as_of(rows, at, VALIDITY_BIGINT)}


def on_versions(
    rows: Rows, *steps: dict[str, Any], queries: Mapping[str, str] | None = None
) -> tuple[Job, Job]:
    files = {
        "models/h.sql": model(
            "select * from nowhere",
            materialized="history_batch",
            unique_key="id",
            meta={"history": VERSIONS},
        )
    }
    made = {"sql": f"create table {SCHEMA}.h using delta as {values(rows, VERSION_TYPES)}"}
    marks = f"select * from {SCHEMA}.history_marks"
    asked = {"h": f"select * from {SCHEMA}.h", "marks": marks, **(queries or {})}
    return Job([made], files), Job(list(steps), files, asked)


def clean(choice: random.Random) -> Work:
    """`clean_history`: no state at or after the horizon changes."""
    rows, cutoff = versions(choice), choice.randint(5, 20)
    # A tag makes the table of marks, which the query reads, also where nothing is dropped.
    before, job = on_versions(rows, operation("clean_history", table="h", before=cutoff))
    tagged = operation("create_tag", tag="first", table="h", at=1, reason="torture")
    before = Job([*before.steps, tagged], before.files)

    def check(answer: Answer) -> Problems:
        left = answer.rows["h"]
        found = failed(answer)
        for at in [1, *range(cutoff, 26)]:
            if state(left, at) != state(rows, at):
                found.append(f"state at {at}: {state(left, at)} instead of {state(rows, at)}")
        known = {json.dumps(row, sort_keys=True) for row in rows}
        found += [f"new: {row}" for row in left if json.dumps(row, sort_keys=True) not in known]
        return found

    return Work(before, job, check)


def rewind(choice: random.Random) -> Work:
    """`rewind`: the current state is the earlier one, and all states before are kept."""
    rows, to = versions(choice), choice.randint(1, 19)
    before, job = on_versions(rows, operation("rewind", table="h", to=to))
    job = Job(job.steps, job.files, {"h": job.queries["h"]})

    def check(answer: Answer) -> Problems:
        found = failed(answer)
        left = answer.rows["h"]
        for at, wanted in [(10**9, to), *((at, at) for at in range(1, 20))]:
            if state(left, at) != state(rows, wanted):
                found.append(f"state at {at}: {state(left, at)} instead of {state(rows, wanted)}")
        return found

    return Work(before, job, check)


def erase(choice: random.Random) -> Work:
    """`erase_subject` on a table and a locked mirror."""
    rows, subject = versions(choice), choice.choice("abcd")
    log = f"{SCHEMA}.main_hx"
    before, job = on_versions(
        rows,
        operation("erase_subject", table="h", only={"id": subject}, mirrors=[log]),
        queries={"log": f"select * from {log}", "properties": f"show tblproperties {log}"},
    )
    made = [
        {"sql": f"create table {log} using delta as select 'a' as id, 's' as v"},
        {"sql": f"insert into {log} select explode(array('b', 'c', 'd')), 's'"},
        {"sql": f"alter table {log} set tblproperties ('delta.appendOnly' = 'true')"},
    ]

    def check(answer: Answer) -> Problems:
        erased = [{**row, "v": None if row["id"] == subject else row["v"]} for row in rows]
        logged = [{"id": key, "v": None if key == subject else "s"} for key in "abcd"]
        found = failed(answer)
        found += differences("h", answer.rows["h"], erased, VERSION_TYPES)
        found += differences("main_hx", answer.rows["log"], logged, ("id", "v"))
        marks = [row["kind"] for row in answer.rows["marks"]]
        found += [f"marks {marks}"] if marks != ["erasure"] else []
        locked = {"key": "delta.appendOnly", "value": "true"} in answer.rows["properties"]
        return found + ([] if locked else ["the mirror is not locked"])

    return Work(Job([*before.steps, *made], before.files), job, check)


def tags(choice: random.Random) -> Work:
    """`create_tag` on a table that has tags."""
    rows = versions(choice)
    before, job = on_versions(rows, operation("create_tag", tag="torn", table="h", at=5))
    first = operation("create_tag", tag="first", table="h", at=choice.randint(1, 9))
    before = Job([*before.steps, first], before.files)

    def check(answer: Answer) -> Problems:
        # The interrupted operation may have created the tag.
        errors = [e for e in answer.outcomes if e and "the tag exists already" not in e]
        named = Counter(row["name"] for row in answer.rows["marks"] if row["kind"] == "tag")
        found = [] if named == Counter(["first", "torn"]) else [f"tags {dict(named)}"]
        return errors + found + differences("h", answer.rows["h"], rows, VERSION_TYPES)

    return Work(before, job, check)


def numbers(choice: random.Random) -> Work:
    """`number_transactions`: numbers without gap or change."""
    first, total = choice.randint(1, 20), choice.randint(25, 50)

    def log(number: int) -> dict[str, str]:
        return {
            "sql": f"create or replace table {SCHEMA}.log using delta as select id as txid,"
            " 'public' as `schema`, 'foo' as `table`, timestamp_millis(1000 * id) as visible"
            f" from range({number})"
        }

    arguments = {"transactions": f"{SCHEMA}.log", "numbers": f"{SCHEMA}.numbers"}
    run = operation("number_transactions", **arguments, visible="visible")
    kept = {"sql": f"create table {SCHEMA}.kept using delta as select * from {SCHEMA}.numbers"}
    before = Job([log(first), run, kept, log(total)])
    queries = {
        "numbers": f"select txid, id from {SCHEMA}.numbers",
        "kept": f"select txid, id from {SCHEMA}.kept",
    }

    def check(answer: Answer) -> Problems:
        found = failed(answer)
        given = [(row["txid"], row["id"]) for row in answer.rows["numbers"]]
        if sorted(txid for txid, _ in given) != list(range(total)):
            found.append(f"transactions {sorted(txid for txid, _ in given)}")
        if sorted(number for _, number in given) != list(range(1, total + 1)):
            found.append(f"numbers {sorted(number for _, number in given)}")
        kept_pairs = {(row["txid"], row["id"]) for row in answer.rows["kept"]}
        return found + ([] if kept_pairs <= set(given) else ["a number was changed"])

    return Work(before, Job([run], {}, queries), check)


def branches(choice: random.Random) -> Work:
    """`merge_branch`, between two runs of the states: the branch is merged once, or not at all.

    main     a b c …  txn 1 ────────────── 3 ── merge
    draft             └── fork at 1 ── 2 ──┘           2 and 3 edit other features
    """
    ids = [f"f{n}" for n in range(choice.randint(4, 8))]
    drafted = choice.sample(ids, choice.randint(1, len(ids) - 1))
    edited = [id_ for id_ in ids if id_ not in drafted]
    deleted = choice.choice([None, *drafted])
    types = {
        "txn": "bigint", "position": "int", "action": "string", "branch": "string",
        "id": "string", "app_id": "string", "at": "timestamp", "v": "string",
    }  # fmt: skip

    def writes(txn: int, branch: str, action: str, ids: Iterable[str]) -> dict[str, Any]:
        rows = [
            {
                "txn": txn, "position": place, "branch": branch, "id": id_, "app_id": "torture",
                "action": "DELETE" if id_ == deleted and branch != "main" else action,
                "at": datetime(2024, 1, txn), "v": f"{branch} {txn}",
            }
            for place, id_ in enumerate(ids)
        ]  # fmt: skip
        return {"sql": f"insert into {SCHEMA}.edits {values(rows, types)}"}

    listed = ", ".join(f"{name} {type_}" for name, type_ in types.items())
    files = {
        "models/f.sql": model(
            "{{ dbt_history.feature_states(api.Relation.create("
            f"schema='{SCHEMA}', identifier='edits'), id=['branch', 'id'], payload=['v'],"
            f" branches='{SCHEMA}.branches') }}}}",
            materialized="history_batch",
            unique_key=["branch", "id"],
            meta={"history": {"convention": "naksha"}},
        )
    }
    on_draft = {"table": "f", "writes": f"{SCHEMA}.edits", "branches": f"{SCHEMA}.branches"}
    on_draft["branch"] = "draft"
    run = dbt("run", "--select", "f")
    before = Job(
        [
            {"sql": f"create table {SCHEMA}.edits ({listed}) using delta"},
            writes(1, "main", "CREATE", ids),
            run,
            operation("create_branch", **on_draft),
            writes(2, "draft", "UPDATE", drafted),
            writes(3, "main", "UPDATE", edited),
        ],
        files,
    )
    queries = {
        "main": f"select id, v from {SCHEMA}.f where branch = 'main' and txn_next is null"
        " and `@ns:com:here:xyz`.action <> 'DELETE'",
        "merges": f"select distinct txn from {SCHEMA}.edits where branch = 'main' and txn > 3",
    }
    job = Job([run, operation("merge_branch", **on_draft, app_id="torture"), run], files, queries)
    expected: Rows = [{"id": id_, "v": "main 3"} for id_ in edited]
    expected += [{"id": id_, "v": "draft 2"} for id_ in drafted if id_ != deleted]

    def check(answer: Answer) -> Problems:
        merges = answer.rows["merges"]
        found = failed(answer) + differences("main", answer.rows["main"], expected, ("id", "v"))
        return found + ([] if merges == [{"txn": 4}] else [f"transactions of merges: {merges}"])

    return Work(before, job, check)


# Landing.


def landing(choice: random.Random, folder: Path) -> Work:
    """`dbt-history land` of several requests."""
    count = choice.randint(2, 4)
    expected = []
    for number in range(count):
        writer = RequestWriter(folder, LANDED)
        ids = [str(10 * number + place) for place in range(choice.randint(1, 9))]
        rows = upserts(*((id_, "x", "1.5") for id_ in ids))
        writer.add_csv("upsert", f"upsert_{number}.csv", HEADER, rows)
        writer.write(f"request_{number}.json")
        expected += [{"id": id_, "_batch": number + 1} for id_ in ids]
    queries = {"rows": f"select id, _batch from {SCHEMA}.items_landing"}
    job = Job([{"land": str(folder)}], {}, queries)

    def check(answer: Answer) -> Problems:
        found = differences("landing", answer.rows["rows"], expected, ("id", "_batch"))
        return failed(answer) + found

    return Work(Job([]), job, check)


def serving(choice: random.Random, folder: Path) -> Work:
    """`serve`: several calls of `WriteHistoryBatch`, which add, change and delete records."""
    table: Rows = []
    for number in range(1, choice.randint(3, 5)):
        at = datetime(2024, 1, number)
        shown = f"{at:%Y-%m-%dT00:00:00Z}"
        ids = choice.sample(range(1, 7), choice.randint(1, 5))
        deleted = [id_ for id_ in ids if choice.random() < 0.3]
        changed = [id_ for id_ in ids if id_ not in deleted]
        name = f"n{number}"
        files = {
            "earliest_start": (("id", FIVETRAN.start), [[str(id_), shown] for id_ in ids]),
            "upsert": (HEADER, [[str(id_), name, "1", shown, END, "true"] for id_ in changed]),
            "delete": (("id", FIVETRAN.end), [[str(id_), shown] for id_ in deleted]),
        }
        writer = RequestWriter(folder, LANDED, schema=SCHEMA)
        for stage, (header, rows) in files.items():
            if rows:
                writer.add_csv(stage, f"{stage}_{number}.csv", header, rows)
        writer.write(f"request_{number}.json")
        version = {FIVETRAN.start: at, FIVETRAN.end: FIVETRAN.open_end, "_fivetran_active": True}
        batch = [
            *({"_stage": "earliest_start", "id": id_, FIVETRAN.start: at} for id_ in ids),
            *({"_stage": "upsert", "id": id_, "name": name, **version} for id_ in changed),
            *({"_stage": "delete", "id": id_, FIVETRAN.end: at} for id_ in deleted),
        ]
        table = apply_batch(table, batch, ("id",), FIVETRAN).table
    columns = ("id", "name", *FIVETRAN.columns())
    queries = {"items": f"select {', '.join(columns)} from {SCHEMA}.items"}

    def check(answer: Answer) -> Problems:
        return failed(answer) + differences("items", answer.rows["items"], table, columns)

    return Work(Job([]), Job([{"serve": str(folder)}], {}, queries), check)


# Works whose requests are files in a folder.
OF_FILES = {"landing": landing, "serve": serving}
WORKS: dict[str, Callable[[random.Random], Work]] = {
    "history_batch": batches,
    "creation": creation,
    "history_append": append,
    "mirrors": mirrors,
    "clean_history": clean,
    "rewind": rewind,
    "erase_subject": erase,
    "tags": tags,
    "number_transactions": numbers,
    "branches": branches,
}
