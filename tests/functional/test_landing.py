"""The guarantees of `dbt-history land`, one test each."""

from __future__ import annotations

import base64
import json
import os
import time
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from dbt_history.cli import main
from dbt_history.landing import LandingTable, Limits, RefusedError, land
from dbt_history.landing import read_request as read
from dbt_history.landing.land import find_sources, staged
from dbt_history.landing.verify import verify_landing
from dbt_history.landing.writer import NULL, UNMODIFIED, RequestWriter
from tests.support.delta_log import expire_log
from tests.support.landing import COLUMNS, END, HEADER, START, small, upserts
from tests.support.project import Project
from tests.support.selection import thorough

# -- the table -------------------------------------------------------------------------------------


@pytest.fixture
def table(project: Project) -> LandingTable:
    return LandingTable(project.spark, project.schema, "items_landing")


def land_request(table: LandingTable, path: Path, **how: Any) -> Any:
    return land(table.spark, read(path), path.parent, table, **how)


def rows_of(table: LandingTable) -> list[dict[str, Any]]:
    found = table.spark.table(table.full_name).orderBy("_batch", "_order").collect()
    return [row.asDict() for row in found]


def test_a_request_is_landed_once_and_a_repeat_is_reported(
    table: LandingTable, tmp_path: Path
) -> None:
    path = small(tmp_path, compression="ZSTD", is_encrypted=True).write()

    first, again = land_request(table, path), land_request(table, path)

    assert (first.is_new, first.batch, first.counts) == (True, 1, {"upsert": 1})
    assert (again.is_new, again.batch) == (False, 1)
    assert rows_of(table) == [
        {
            "_batch": 1, "_stage": "upsert", "_order": 1_000_000_000_001, "_unmodified": None,
            "id": 1, "name": "a", "amount": Decimal("1.50"),
            "_fivetran_start": datetime(2024, 1, 1), "_fivetran_active": True,
            "_fivetran_end": datetime(9999, 12, 31, 23, 59, 59, 999000),
        }
    ]  # fmt: skip


@pytest.mark.thorough
def test_landed_batches_are_compared_with_the_digests_in_their_commits(
    table: LandingTable, tmp_path: Path
) -> None:
    for number in (1, 2):
        writer = RequestWriter(tmp_path, COLUMNS, compression="ZSTD", is_encrypted=True)
        for part in "ab":
            cells = upserts((f"{number}", part, "1"), (f"{number}0", part, "1"))
            writer.add_csv("upsert", f"{number}_{part}.csv", HEADER, cells)
        request = read(writer.write(f"{number}.json"))
        assert land(table.spark, request, tmp_path, table).is_new

    def verified() -> list[str]:
        return [" ".join(str(batch).split()) for batch in verify_landing(table, tmp_path)]

    assert verified() == [
        f"ok batch {number}: 2 of 2 files as landed, 4 of 4 landed rows" for number in (1, 2)
    ]
    (tmp_path / "1_a.csv").unlink()
    changed = bytearray((tmp_path / "2_b.csv").read_bytes())
    changed[-1] ^= 1
    (tmp_path / "2_b.csv").write_bytes(changed)
    table.spark.sql(f"delete from {table.full_name} where `_batch` = 1")
    table.spark.sql(f"delete from {table.full_name} where `_batch` = 2 and id = 20 and name = 'a'")
    assert verified() == [
        "ok batch 1: 1 of 2 files as landed, 1 missing, 0 of 4 landed rows",
        "failed batch 2: 1 of 2 files as landed, changed: 2_b.csv, 3 of 4 landed rows",
    ]
    command = ["verify-landing", str(table), "--root", str(tmp_path)]
    assert CliRunner().invoke(main, command).exit_code == 1
    (tmp_path / "2_b.csv").unlink()
    (tmp_path / "2_b.csv").symlink_to(tmp_path / "2_a.csv")
    assert "changed: 2_b.csv" in verified()[1]
    missing = CliRunner().invoke(main, ["verify-landing", f"{table}_no", "--root", str(tmp_path)])
    assert (missing.exit_code, "does not exist" in missing.output) == (1, True)
    table.spark.sql(f"create or replace view {table}_view as select 1 as `_batch`")
    failing = ["verify-landing", f"{table}_view", "--root", str(tmp_path)]
    assert CliRunner().invoke(main, failing).exit_code == 3


def test_a_request_gets_the_next_number_and_a_given_number_must_be_higher(
    table: LandingTable, tmp_path: Path
) -> None:
    paths = [small(tmp_path / str(n), table=f"items{n}").write() for n in range(4)]

    numbers = [land_request(table, path, batch=n).batch for path, n in zip(paths, (None, 7, None))]

    assert numbers == [1, 7, 8]
    with pytest.raises(RefusedError, match="batch 8 is not greater than 8"):
        land_request(table, paths[3], batch=8)


@pytest.mark.thorough
def test_a_request_with_another_key_than_the_batch_before_is_refused(
    table: LandingTable, tmp_path: Path
) -> None:
    """Undone batches do not count, nor the order and the letters of the names."""
    keys = [["id"], ["id", "name"], ["NAME", "id"]]
    columns = [COLUMNS, COLUMNS, {"NAME": "STRING", **{n: COLUMNS[n] for n in ("id", "amount")}}]
    paths = []
    for number, (key, types) in enumerate(zip(keys, columns, strict=True)):
        writer = RequestWriter(tmp_path / str(number), types, key=key)
        header = [next(n for n in types if n.lower() == name) for name in HEADER[:3]]
        cells = upserts(("1", "a", "1"), ("1", "b", "1"))
        writer.add_csv("upsert", "u.csv", [*header, *HEADER[3:]], cells)
        paths.append(writer.write())
    first, second, third = paths
    assert land_request(table, first).batch == 1

    for how in ({}, {"dry_run": True}):
        told = r"key is id, name, that of batch 1 of .+ is id;.+full sync in another table"
        with pytest.raises(RefusedError, match=told):
            land_request(table, second, **how)
    command = ["land", str(second), "--schema", table.schema, "--quiet"]
    assert CliRunner().invoke(main, command).exit_code == 1
    assert {row["_batch"] for row in rows_of(table)} == {1}
    done = CliRunner().invoke(main, [*command, "--new-key"])
    assert done.exit_code == 0, done.output
    assert (land_request(table, first).is_new, land_request(table, third).batch) == (False, 3)
    table.spark.sql(f"restore table {table.full_name} to version as of 1")
    with pytest.raises(RefusedError, match="its key is"):
        land_request(table, third)


def test_a_request_takes_the_next_number_if_another_writer_takes_its_own(
    table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (small(tmp_path / n, table=f"items{n}").write() for n in "ab")
    land_request(table, small(tmp_path / "c", table="c").write())
    append = LandingTable.append
    is_late: list[bool] = []

    def overtaken(self: LandingTable, *arguments: Any) -> None:
        if not is_late:
            is_late.append(True)
            land_request(table, first)
        append(self, *arguments)

    monkeypatch.setattr(LandingTable, "append", overtaken)

    assert land_request(table, second).batch == 3
    assert [row["_batch"] for row in rows_of(table)] == [1, 2, 3]


@pytest.mark.parametrize(("step", "is_landed"), [("append", False), thorough("count", True)])
def test_a_run_killed_at_any_point_lands_all_or_nothing(
    step: str, is_landed: bool, table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = small(tmp_path).write()

    def fail(*arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LandingTable, step, fail)
        with pytest.raises(KeyboardInterrupt):
            land_request(table, path)

    assert [row["id"] for row in rows_of(table)] == ([1] if is_landed else [])
    assert land_request(table, path).is_new is not is_landed
    assert [row["id"] for row in rows_of(table)] == [1]


@pytest.mark.parametrize("left", ["table", thorough("table in capitals"), thorough("folder")])
def test_files_of_a_run_killed_while_creating_the_table_do_not_block_others(
    left: str, table: LandingTable, warehouse: Path, tmp_path: Path
) -> None:
    spark = table.spark
    spark.sql(f"create schema if not exists {table.schema}")
    place = warehouse / f"{table.schema}.db" / table.name
    if left == "table in capitals":
        # Spark writes the folder of a table in small letters.
        table = LandingTable(spark, table.schema, table.name.upper())
    if left != "folder":
        types = "_batch bigint, _stage string, _order bigint, _unmodified array<string>, id bigint"
        spark.sql(f"create table delta.`{place}` ({types}) using delta")
    else:
        (place / "_delta_log").mkdir(parents=True)
        (place / "part-0.parquet").write_bytes(b"left")
    path = small(tmp_path).write()

    landed = [land_request(table, path).is_new for _ in range(2)]

    assert landed == [True, False]
    assert spark.table(table.full_name).count() == 1
    assert len(list((place / "_delta_log").glob("*.json"))) == (0 if left == "folder" else 3)
    assert (place / "part-0.parquet").exists() == (left == "folder")


@pytest.mark.thorough
def test_a_restored_table_accepts_the_request_again_with_a_new_number(
    table: LandingTable, tmp_path: Path
) -> None:
    first, second = (small(tmp_path / n, table=n).write() for n in "ab")
    land_request(table, first)
    land_request(table, second)
    table.spark.sql(f"restore table {table.full_name} to version as of 1")

    assert land_request(table, first).is_new is False
    assert land_request(table, second).batch == 3
    assert [row["_batch"] for row in rows_of(table)] == [1, 3]


@pytest.mark.thorough
def test_a_request_is_known_after_its_commit_has_left_the_log(
    table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are copied by the next landing; the last one here leaves the log without a copy.

    version   0        1   2   3            4   5 … 15                    16
    commit    create   1   2   restore: 1   3   properties, checkpoints   4
    copied    ----------------------------
    log                                         -----------------------------
    """
    monkeypatch.setattr("dbt_history.landing.request_log.KEEP_AFTER", 0)
    first, second, third = (small(tmp_path / n, table=n).write() for n in "abc")
    for path in (first, second):
        assert land_request(table, path).is_new
    spark = table.spark
    spark.sql(f"restore table {table.full_name} to version as of 1")
    assert land_request(table, third).batch == 3
    for number in range(11):
        spark.sql(f"alter table {table.full_name} set tblproperties ('n' = '{number}')")
    expire_log(spark, table.full_name)
    os.utime(third, (0, 0))
    # A new process has no log in memory.
    table = LandingTable(spark, table.schema, table.name)

    assert land_request(table, first).is_new is False
    unknown = [f"unknown batch {number}: its commit is no longer in the log" for number in (1, 3)]
    assert [str(batch) for batch in verify_landing(table, tmp_path)] == unknown
    command = ["verify-landing", str(table), "--root", str(tmp_path)]
    verified = CliRunner().invoke(main, command)
    assert (verified.exit_code, verified.output.splitlines()) == (0, unknown)
    with pytest.raises(RefusedError, match="not known whether it was landed"):
        land_request(table, third)
    os.utime(second)
    assert land_request(table, second).batch == 4
    assert [row["_batch"] for row in rows_of(table)] == [1, 3, 4]


@pytest.mark.thorough
def test_entries_are_copied_at_half_of_a_short_retention_of_the_log(
    table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    retention  |———————————————————————— 8 days ———————————————————————|
    landed     a                           b: no copy   c: copies a, b
    days       0                         3.9          4.1
    """
    copies = f"{table.schema}.{table.name}_requests"
    is_there = table.spark.catalog.tableExists
    a, b, c = (small(tmp_path / n, table=n).write() for n in "abc")
    land_request(table, a)
    table.set_property("delta.logRetentionDuration", "8 days")
    start = time.time()
    for path, days in ((b, 3.9), (c, 4.1)):
        later = SimpleNamespace(time=lambda days=days: start + days * 24 * 3600)
        monkeypatch.setattr("dbt_history.landing.request_log.time", later)
        assert not is_there(copies)
        land_request(table, path)

    kept = table.spark.table(copies).where("userMetadata is not null")
    assert sorted(json.loads(row["userMetadata"])["batch"] for row in kept.collect()) == [1, 2]


@pytest.mark.thorough
def test_a_request_without_rows_is_also_a_batch(table: LandingTable, tmp_path: Path) -> None:
    nothing = RequestWriter(tmp_path / "a", COLUMNS).write()
    header = RequestWriter(tmp_path / "b", COLUMNS)
    header.add_csv("delete", "empty.csv", ["id", "_fivetran_end"], [])

    landed = [land_request(table, path) for path in (nothing, header.write(), nothing)]

    assert [(done.is_new, done.batch, done.counts) for done in landed] == [
        (True, 1, {}),
        (True, 2, {}),
        (False, 1, {}),
    ]


def test_an_invalid_cell_at_the_end_of_one_file_refuses_the_whole_request(
    table: LandingTable, tmp_path: Path
) -> None:
    writer = small(tmp_path)
    rows = upserts(*((str(n), "x", "1") for n in range(60_000)))
    rows[59_998][2], rows[59_999][0] = "much", NULL
    writer.add_csv("upsert", "many.csv", HEADER, rows)

    with pytest.raises(RefusedError) as refused:
        land_request(table, writer.write())

    message = str(refused.value)
    assert "many.csv, line 60,000, column amount: 'much' is not a valid DECIMAL(10, 2)" in message
    assert "many.csv, line 60,001, column id: must not be NULL" in message
    assert rows_of(table) == []


@pytest.mark.thorough
def test_a_request_of_more_files_than_one_function_reads_is_landed_as_one_batch(
    table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The package has a function of the module's name.
    monkeypatch.setattr(import_module("dbt_history.landing.land"), "FILES_PER_FUNCTION", 2)
    writer = RequestWriter(tmp_path, COLUMNS, is_encrypted=True)
    for number in range(1, 6):
        writer.add_csv("upsert", f"{number}.csv", HEADER, upserts((str(number), "a", "1")))
    path = writer.write()
    writer.add_csv("update", "6.csv", ["id", "_fivetran_start"], [["6", START], ["x", START]])
    wrong = writer.write("wrong.json")

    assert land_request(table, path, dry_run=True).counts == {"upsert": 5}
    with pytest.raises(RefusedError, match="line 3, column id: 'x' is not a valid LONG"):
        land_request(table, wrong)
    assert land_request(table, path).counts == {"upsert": 5}
    found = [(row["id"], row["_order"] // 10**12, row["_batch"]) for row in rows_of(table)]
    assert found == [(number, number, 1) for number in range(1, 6)]


def test_a_dry_run_reads_everything_and_writes_nothing(table: LandingTable, tmp_path: Path) -> None:
    writer = small(tmp_path)

    assert land_request(table, writer.write(), dry_run=True).counts == {"upsert": 1}
    writer.add_csv("update", "wrong.csv", ["id", "_fivetran_start"], [["x", START]])
    with pytest.raises(RefusedError, match=r"wrong.csv, line 2, column id: 'x' is not a valid"):
        land_request(table, writer.write(), dry_run=True)
    assert not table.exists()


def test_a_new_column_is_added_and_another_type_is_refused(
    table: LandingTable, tmp_path: Path
) -> None:
    land_request(table, small(tmp_path / "a").write())
    more = RequestWriter(tmp_path / "b", {**COLUMNS, "a b": "NAIVE_DATETIME"})
    more.add_csv(
        "upsert", "f", [*HEADER, "a b"], [["2", "b", NULL, START, END, "true", START[:-1]]]
    )
    other = RequestWriter(tmp_path / "c", {**COLUMNS, "name": "INT"})
    other.add_csv("upsert", "f", HEADER, upserts(("3", "3", "3")))

    landed = land_request(table, more.write())

    assert any("column mapping" in note for note in landed.notes)
    assert rows_of(table)[1]["a b"] == datetime(2024, 1, 1)
    with pytest.raises(RefusedError, match="column name: is int in the request, string in"):
        land_request(table, other.write())


@pytest.mark.thorough
def test_a_column_with_a_wider_type_is_landed_after_the_statements_of_the_refusal(
    table: LandingTable, tmp_path: Path, project: Project
) -> None:
    narrow = {"id": "INT", "name": "STRING", "amount": ("DECIMAL", 6, 2)}
    first = RequestWriter(tmp_path / "a", narrow)
    first.add_csv("upsert", "u", HEADER, upserts(("1", "a", "1")))
    second = RequestWriter(tmp_path / "b", {**COLUMNS, "amount": ("DECIMAL", 12, 4)})
    second.add_csv("upsert", "u", HEADER, upserts(("5000000000", "b", "12345678.1234")))
    project.history("h", f"select * from {table.full_name}")
    land_request(table, first.write())
    project.run("h")

    with pytest.raises(RefusedError, match="id: is bigint in the request, int in") as refused:
        land_request(table, second.write())
    history = f"`{project.schema}`.`h`"
    for problem in str(refused.value).splitlines()[1:]:
        for statement in problem.split("with the same statements: ")[1].split("; "):
            table.spark.sql(statement)
            table.spark.sql(statement.replace(table.full_name, history))
    land_request(table, second.write())
    project.run("h")

    found = {row["id"]: row["amount"] for row in project.rows("h")}
    assert found == {1: Decimal("1.0000"), 5_000_000_000: Decimal("12345678.1234")}
    assert {row["id"]: row["amount"] for row in rows_of(table)} == found
    # Another type has no such way out.
    with pytest.raises(RefusedError, match=r"(?m)int in the request, bigint in [a-z0-9_.]+$"):
        land_request(table, first.write())


@pytest.mark.thorough
@pytest.mark.parametrize("is_killed", [False, True])
def test_an_update_landed_before_a_new_column_keeps_the_value_of_the_history(
    is_killed: bool, table: LandingTable, tmp_path: Path, project: Project
) -> None:
    """The history has a column before the landing table, and the update is built after it.

    request 1: insert   build   color = red   2: update   3: has color (killed, again)   build
    """
    noon = "2024-01-01T12:00:00Z"
    first = RequestWriter(tmp_path, COLUMNS)
    first.add_csv("upsert", "u1", HEADER, upserts(("1", "a", "1")))
    second = RequestWriter(tmp_path, COLUMNS)
    second.add_csv("earliest_start", "e2", ["id", "_fivetran_start"], [["1", noon]])
    second.add_csv("update", "p2", HEADER, [["1", "b", UNMODIFIED, noon, END, "true"]])
    more = {"color": "STRING", "a b": "UTC_DATETIME", "select`.'": ("DECIMAL", 10, 2)}
    third = RequestWriter(tmp_path, {**COLUMNS, **more})
    cells = [["2", "c", "3", START, END, "true", "blue", START, "1.5"]]
    third.add_csv("upsert", "u3", [*HEADER, *more], cells)
    project.history("h", f"select * from {table.full_name}")
    land_request(table, first.write("1.json"))
    project.run("h")
    arguments = {"table": f"{project.schema}.h", "column": "color", "default": "red"}
    project.dbt(
        "run-operation", "add_column_with_default_value",
        "--args", json.dumps({**arguments, "type": "string"}),
    )  # fmt: skip
    land_request(table, second.write("2.json"))
    path = third.write("3.json")
    if is_killed:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LandingTable, "append", stop)
            with pytest.raises(KeyboardInterrupt):
                land_request(table, path)

    land_request(table, path)
    project.run("h")

    found = sorted((row["id"], row["name"], row["color"]) for row in project.rows("h"))
    assert found == [(1, "a", "red"), (1, "b", "red"), (2, "c", "blue")]
    update = next(row for row in rows_of(table) if row["_stage"] == "update")
    assert update["_unmodified"] == ["amount", *more]
    assert [update[name] for name in more] == [None] * 3


@pytest.mark.thorough
def test_an_update_keeps_a_column_that_another_run_adds_before_its_append(
    table: LandingTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = small(tmp_path, table="first"), RequestWriter(tmp_path, COLUMNS)
    second.add_csv("update", "p", HEADER, [["1", "b", UNMODIFIED, START, END, "true"]])
    land_request(table, first.write("1.json"))
    append = LandingTable.append

    def overtaken(self: LandingTable, *arguments: Any) -> None:
        self.add({"co`lor's": "string"})
        append(self, *arguments)

    monkeypatch.setattr(LandingTable, "append", overtaken)

    assert land_request(table, second.write("2.json")).counts == {"update": 1}
    assert [row["_unmodified"] for row in rows_of(table)] == [None, ["amount", "co`lor's"]]


def stop(*arguments: Any) -> None:
    raise KeyboardInterrupt


def test_an_existing_table_must_be_a_landing_table(table: LandingTable, tmp_path: Path) -> None:
    table.spark.sql(f"create schema {table.schema}")
    table.spark.sql(f"create table {table.full_name} (id bigint) using delta")

    with pytest.raises(RefusedError, match="missing _batch, _stage, _order, _unmodified"):
        land_request(table, small(tmp_path).write())


def test_column_names_that_contain_sql_are_quoted(table: LandingTable, tmp_path: Path) -> None:
    names = ["drop table x; --", "a`b", "x'y", "start", "Straße 日本", "a.b"]
    writer = RequestWriter(tmp_path, {"id": "INT", **dict.fromkeys(names, "STRING")})
    header = ["id", "_fivetran_start", *reversed(names)]
    writer.add_csv("update", "f", header, [["1", START, *"abcde", UNMODIFIED]])

    land_request(table, writer.write())

    row = rows_of(table)[0]
    assert [row[name] for name in reversed(names)] == [*"abcde", None]
    assert set(row["_unmodified"]) == {names[0], "_fivetran_end", "_fivetran_active"}


def test_keys_appear_in_no_plan_log_or_error(
    table: LandingTable, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    writer = small(tmp_path, compression="GZIP", is_encrypted=True)
    path = writer.write()
    key = writer.keys["upsert.csv"]
    request = read(path)
    frame = staged(table.spark, request, find_sources(request, tmp_path, Limits()))
    execution = frame._jdf.queryExecution()
    texts = [execution.toString(), execution.logical().toJSON(), repr(request), str(request)]
    land_request(table, path)
    texts.append(str(table.spark.sql(f"describe history {table.full_name}").collect()))
    other = small(tmp_path / "other", table="other", is_encrypted=True)
    wrong = other.keys["upsert.csv"] = os.urandom(32)
    with pytest.raises(RefusedError) as refused:
        land_request(table, other.write())
    texts += [str(refused.value), repr(refused.value), *capfd.readouterr()]

    assert "wrong key" in str(refused.value)
    for secret in (key, wrong):
        for form in (base64.b64encode(secret).decode(), secret.hex(), repr(secret)[2:-1]):
            assert not any(form in text for text in texts)


@pytest.mark.thorough
def test_a_landed_request_becomes_history(project: Project, tmp_path: Path) -> None:
    table = LandingTable(project.spark, project.schema, "items_landing")
    first = RequestWriter(tmp_path, COLUMNS, compression="ZSTD", is_encrypted=True)
    first.add_csv("earliest_start", "e1", ["id", "_fivetran_start"], [["1", START]])
    first.add_csv("upsert", "u1", HEADER, upserts(("1", "a", "1.5"), ("2", "b", "2")))
    second = RequestWriter(tmp_path, COLUMNS, compression="GZIP")
    noon = "2024-01-01T12:00:00Z"
    second.add_csv("earliest_start", "e2", ["_fivetran_start", "id"], [[noon, "1"]])
    second.add_csv(
        "update", "p2", [*reversed(HEADER)], [["true", END, noon, UNMODIFIED, "new", "1"]]
    )
    second.add_csv("delete", "d2", ["_fivetran_end", "id"], [[noon, "2"]])
    project.history("h", f"select * from {table.full_name}")
    for path in (first.write("1.json"), second.write("2.json")):
        land_request(table, path)

    run = project.run("h")

    assert run.message("h").startswith("2 batches: 3 added, 2 closed")
    found = {(row["id"], row["_fivetran_start"]): row for row in project.rows("h")}
    assert len(found) == 3
    new = found[1, datetime(2024, 1, 1, 12)]
    assert (new["name"], new["amount"], new["_fivetran_active"]) == ("new", Decimal("1.50"), True)
    assert found[2, datetime(2024, 1, 1)]["_fivetran_end"] == datetime(2024, 1, 1, 12)


# -- the command -----------------------------------------------------------------------------------


def test_the_command_lands_a_folder_in_order_and_reports_each_request(
    project: Project, tmp_path: Path
) -> None:
    for number in (10, 9):
        small(tmp_path / "files", table="items").write()
        writer = RequestWriter(tmp_path, COLUMNS)
        writer.add_csv("upsert", f"u{number}", HEADER, upserts((str(number), "a", "1")))
        writer.write(f"request_{number}.json")
    arguments = ["land", str(tmp_path), "--schema", project.schema, "--quiet"]

    first, again = (CliRunner().invoke(main, arguments) for _ in range(2))

    assert first.exit_code == 0, first.output
    name = f"{project.schema}.items_landing"
    assert first.output.splitlines() == [
        f"  created {name}",
        "  its numbers begin at 1 without --batch: a history that has taken batches of another"
        " landing table takes only numbers above its last one",
        f"request_9.json: landed as batch 1 of {name}: 1 rows (1 upsert)",
        f"request_10.json: landed as batch 2 of {name}: 1 rows (1 upsert)",
    ]
    assert again.exit_code == 0
    assert again.output.count("landed before as batch") == 2


def test_the_command_ends_with_1_for_a_refusal_and_with_2_for_wrong_options(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text("{}")

    refused = CliRunner().invoke(main, ["land", str(path)])
    unusable = CliRunner().invoke(main, ["land", str(path), "x.json", "--batch", "1"])

    assert refused.exit_code == 1
    for text in ("schema_name is missing", "table is missing", "file_params is missing"):
        assert text in refused.output
    assert unusable.exit_code == 2
