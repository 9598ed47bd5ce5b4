"""`dbt-history adopt`: tables that real runs of `dbt snapshot` filled go on as histories."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from dbt_history.generate import read_files
from tests.support.project import NAME, SCHEMA, Project
from tests.support.staging import day
from tests.support.tables import data_frame

TYPES = {"id": "bigint", "Part": "string", "city": "string", "seen": "bigint", "at": "timestamp"}
State = list[tuple[Any, ...]]
# Id, part, city, seen, changed at. Record 2 is deleted before the third load and comes back in the
# fourth; the city of record 3 becomes NULL.
LOADS: list[State] = [
    [(1, "x", "Bonn", 1, day(1)), (2, "x", "Kiel", 1, day(1)), (3, "y", "Jena", 1, day(1))],
    [(1, "x", "Ulm", 2, day(2)), (2, "x", "Kiel", 1, day(1)), (3, "y", "Jena", 1, day(1))],
    [(1, "x", "Ulm", 2, day(2)), (3, "y", None, 3, day(3))],
    [(1, "x", "Bonn", 4, day(4)), (2, "x", "Kiel", 4, day(4)), (3, "y", None, 3, day(3))],
    [(1, "x", "Bonn", 4, day(4)), (3, "y", "", 5, day(5)), (4, "y", "NULL", 5, day(5))],
    [(1, "x", "Bonn", 4, day(4)), (2, "x", "Kiel", 6, day(6)), (4, "y", "Ulm", 6, day(6))],
]
TIMESTAMP = {"strategy": "timestamp", "updated_at": "at", "unique_key": "id"}
CHECK = {"strategy": "check", "check_cols": ["city"], "unique_key": ["id", "Part"]}


def load(project: Project, state: State) -> None:
    rows = [dict(zip(TYPES, row, strict=True)) for row in state]
    project.spark.sql(f"create schema if not exists {project.schema}")
    frame = data_frame(project.spark, rows, TYPES)
    frame.write.format("delta").mode("overwrite").saveAsTable(project.table("main"))


def snapshot(project: Project, name: str, columns: str = "*", /, **config: Any) -> None:
    """A snapshot of `main`; the package's repairs are dispatched in the tests' project."""
    settings = {
        "target_schema": project.schema, "file_format": "delta", "hard_deletes": "invalidate",
        **config,
    }  # fmt: skip
    text = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    project.write(
        f"snapshots/{name}.sql",
        f"{{% snapshot {name} %}}\n{{{{ config({text}) }}}}\n"
        f"select {columns} from {project.table('main')}\n{{% endsnapshot %}}\n",
    )


def adopt(project: Project, capsys: pytest.CaptureFixture[str], name: str) -> str:
    """The model that replaces the snapshot; the snapshot's definition is removed."""
    capsys.readouterr()
    project.dbt("run-operation", "adopt_snapshot", "--args", f"{{snapshot: {name}}}")
    files = read_files(capsys.readouterr().out)
    assert list(files) == [f"models/history/{name}.sql"]
    (project.path / f"snapshots/{name}.sql").unlink()
    text = files[f"models/history/{name}.sql"]
    project.write(f"models/history/{name}.sql", text)
    return text


def open_rows(project: Project, name: str, until: str = "dbt_valid_to") -> set[tuple[Any, ...]]:
    found = project.spark.sql(
        f"select id, Part, city from {project.table(name)}"
        f" where {until} is null or {until} > timestamp'9000-01-01'"
    ).collect()
    return {tuple(row) for row in found}


def versions(project: Project, name: str) -> list[tuple[Any, ...]]:
    found = project.spark.sql(f"select * from {project.table(name)} order by all").collect()
    return [tuple(row) for row in found]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (TIMESTAMP, '"updated_at": "at"'),
        (CHECK, '"track_columns": ["city"]'),
        ({**CHECK, "check_cols": "all"}, '"convention": "dbt_snapshot"'),
        ({**TIMESTAMP, "hard_deletes": "ignore"}, '"source": "changes"'),
        (
            {**TIMESTAMP, "dbt_valid_to_current": "to_date('9999-12-31')"},
            '"open_end": "9999-12-31 00:00:00 UTC"',
        ),
        (
            {
                **TIMESTAMP,
                "snapshot_meta_column_names": {
                    "dbt_valid_from": "since", "dbt_valid_to": "until",
                    "dbt_scd_id": "version", "dbt_updated_at": "changed",
                },
            },
            '"snapshot_columns": {"dbt_scd_id": "version"',
        ),
    ],
)  # fmt: skip
def test_a_snapshot_goes_on_as_a_history(
    project: Project, capsys: pytest.CaptureFixture[str], config: dict[str, Any], expected: str
) -> None:
    """Three loads by `dbt snapshot`, two by the model, one by the snapshot; all on a copy, too.

    load       1          2          3             4          5            6
    snapshot   1 Bonn     1 Ulm      2 deleted     .          .            4 Ulm
    history                          nothing new   1 Bonn     2 deleted
    """
    names = config.get("snapshot_meta_column_names", {})
    until = names.get("dbt_valid_to", "dbt_valid_to")
    snapshot(project, "kept", **config)
    snapshot(project, "beside", **config)
    for state in LOADS[:3]:
        load(project, state)
        project.dbt("snapshot")
    before = versions(project, "kept")
    text = adopt(project, capsys, "kept")
    assert expected in text.replace("'", '"')

    project.run("kept")
    assert versions(project, "kept") == before
    for state in LOADS[3:5]:
        load(project, state)
        project.run("kept")
        project.dbt("snapshot")
        assert open_rows(project, "kept", until) == open_rows(project, "beside", until)

    columns = project.spark.table(project.table("kept")).columns
    assert columns == project.spark.table(project.table("beside")).columns
    rows = project.rows("kept")
    ids = [row[names.get("dbt_scd_id", "dbt_scd_id")] for row in rows]
    assert None not in ids
    assert len(set(ids)) == len(rows)
    changed = names.get("dbt_updated_at", "dbt_updated_at")
    start = names.get("dbt_valid_from", "dbt_valid_from")
    assert all(isinstance(row[changed], datetime) for row in rows)
    if config["strategy"] == "timestamp":
        assert all(row[changed] == row[start] for row in rows)

    # And back: the snapshot goes on with the table.
    (project.path / "models/history/kept.sql").unlink()
    snapshot(project, "kept", **config)
    load(project, LOADS[5])
    project.dbt("snapshot")
    assert open_rows(project, "kept", until) == open_rows(project, "beside", until)


@pytest.mark.thorough
def test_a_rewound_version_of_an_adopted_snapshot_has_an_id_of_its_own(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    record 1    1 Bonn     2 Ulm      rewound to 1: Bonn
    record 2    1 Kiel                                        it is not changed
    """
    snapshot(project, "kept", **TIMESTAMP)
    load(project, LOADS[0])
    project.dbt("snapshot")
    adopt(project, capsys, "kept")
    load(project, LOADS[1])
    project.run("kept")

    to = json.dumps({"table": "kept", "to": str(day(1))})
    rewound = project.dbt("run-operation", "rewind", "--args", to)
    assert "records restored 1, ended 0" in rewound.log
    again = project.dbt("run-operation", "rewind", "--args", to)
    assert "records restored 0, ended 0" in again.log

    rows = project.rows("kept")
    cities = [row["city"] for row in sorted(rows, key=lambda row: row["dbt_valid_from"])]
    assert sorted(cities[:3]) == ["Bonn", "Jena", "Kiel"]
    assert cities[3:] == ["Ulm", "Bonn"]
    assert len({row["dbt_scd_id"] for row in rows}) == len(rows)
    assert all(row["dbt_updated_at"] == row["dbt_valid_from"] for row in rows)


def test_a_snapshot_in_a_schema_of_its_own_goes_on_there(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """dbt puts the profile's schema before `schema`; the refusal names the macro that does not."""
    elsewhere = f"kept_{project.schema}"
    snapshot(project, "kept", **{**TIMESTAMP, "target_schema": elsewhere})
    try:
        for state in LOADS[:2]:
            load(project, state)
            project.dbt("snapshot")
        refused = project.dbt(
            "run-operation", "adopt_snapshot", "--args", "{snapshot: kept}", check=False
        )
        assert f"kept: the table is in {elsewhere}, where dbt would not look" in refused.log
        assert f"it looks in {SCHEMA} without a setting schema" in refused.log
        assert f"and in {SCHEMA}_{elsewhere} with schema: {elsewhere}" in refused.log
        project.write(
            "macros/places.sql",
            next(line for line in refused.log.splitlines() if "% macro" in line).strip(),
        )

        adopt(project, capsys, "kept")
        load(project, LOADS[2])
        project.run("kept")

        kept = project.spark.table(f"{elsewhere}.kept").collect()
        assert sorted((row["id"], row["city"] or "") for row in kept) == [
            (1, "Bonn"), (1, "Ulm"), (2, "Kiel"), (3, ""), (3, "Jena"),
        ]  # fmt: skip
    finally:
        project.spark.sql(f"drop schema if exists {elsewhere} cascade")


@pytest.mark.thorough
def test_the_schema_of_a_folder_does_not_apply_to_an_adopted_table(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = project.path / "dbt_project.yml"
    before = settings.read_text()
    folders = {"models": {NAME: {"history": {"+schema": "marts"}}}}
    settings.write_text(json.dumps({**json.loads(before), **folders}))
    snapshot(project, "kept", **{**TIMESTAMP, "target_schema": SCHEMA})
    try:
        for state in LOADS[:2]:
            load(project, state)
            project.dbt("snapshot")
        assert "schema=none" in adopt(project, capsys, "kept")
        load(project, LOADS[2])
        project.run("kept")

        assert project.spark.table(f"{SCHEMA}.kept").count() == 5
    finally:
        settings.write_text(before)
        project.spark.sql(f"drop table if exists {SCHEMA}.kept")


@pytest.mark.thorough
def test_a_snapshot_of_a_convention_goes_on_with_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    load       1          2          3             touched     8            9
    snapshot   1 Bonn     1 Ulm      2 deleted     .           .            4 Jena
    history                          nothing new   no version  1 Bonn
    """
    columns = "*, true as _fivetran_active"
    config = {
        "strategy": "dbt_history.versions", "unique_key": "id", "updated_at": "at",
        "snapshot_meta_column_names": {
            "dbt_valid_from": "_fivetran_start", "dbt_valid_to": "_fivetran_end",
        },
        "dbt_valid_to_current": "timestamp'9999-12-31 23:59:59.999 UTC'",
        "meta": {"history": {"convention": "fivetran"}},
    }  # fmt: skip
    snapshot(project, "kept", columns, **config)
    for state in LOADS[:3]:
        load(project, state)
        project.dbt("snapshot")
    before = versions(project, "kept")
    adopt(project, capsys, "kept")

    project.run("kept")
    assert versions(project, "kept") == before

    def current() -> dict[int, tuple[Any, ...]]:
        return {
            row["id"]: (row["city"], row["at"], row["_fivetran_start"])
            for row in project.rows("kept")
            if row["_fivetran_active"]
        }

    load(project, [(*row[:4], day(7)) for row in LOADS[2]])
    project.run("kept")
    assert current() == {1: ("Ulm", day(7), day(2)), 3: (None, day(7), day(3))}

    load(project, [(1, "x", "Bonn", 4, day(8)), (3, "y", None, 3, day(7))])
    project.run("kept")
    assert current() == {1: ("Bonn", day(8), day(8)), 3: (None, day(7), day(3))}
    (ended,) = [
        row for row in project.rows("kept")
        if row["city"] == "Ulm" and row["_fivetran_end"] > row["_fivetran_start"]
    ]  # fmt: skip
    assert ended["_fivetran_end"] == day(8) - timedelta(milliseconds=1)
    assert ended["_fivetran_active"] is False

    # And back: the snapshot goes on with the table.
    (project.path / "models/history/kept.sql").unlink()
    snapshot(project, "kept", columns, **config)
    load(project, [(1, "x", "Bonn", 4, day(8)), (4, "y", "Jena", 9, day(9))])
    project.dbt("snapshot")
    assert current() == {1: ("Bonn", day(8), day(8)), 4: ("Jena", day(9), day(9))}


@pytest.mark.thorough
def test_a_table_of_auto_cdc_goes_on_as_a_history(project: Project) -> None:
    """Its rows are as AUTO CDC leaves them; the source has changed since then."""
    load(project, LOADS[1])
    table = project.table("cdc")
    project.spark.sql(
        f"create table {table} using delta as select *, timestamp'2024-01-01' as __START_AT,"
        f" timestamp'2024-01-02' as __END_AT from {project.table('main')} where id = 1 union all"
        f" select *, `at`, null from {project.table('main')}"
    )
    before = versions(project, "cdc")
    project.model(
        "cdc",
        f"select * from {project.table('main')}",
        materialized="history",
        unique_key=["id", "Part"],
        meta={"history": {"convention": "auto_cdc", "updated_at": "at"}},
    )

    project.run("cdc")
    assert versions(project, "cdc") == before
    load(project, LOADS[2])
    project.run("cdc")

    assert open_rows(project, "cdc", "__END_AT") == {(1, "x", "Ulm"), (3, "y", None)}
    assert len(versions(project, "cdc")) == len(before) + 1


def test_a_table_that_contradicts_itself_is_refused_and_mended(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two open versions of record 1, as a dbt without the repair for ties leaves them."""
    snapshot(project, "kept", **TIMESTAMP)
    load(project, LOADS[0])
    project.dbt("snapshot")
    table = project.table("kept")
    project.spark.sql(
        f"insert into {table} select id, Part, 'Ulm', seen, timestamp'2024-01-09', 'x',"
        f" timestamp'2024-01-09', timestamp'2024-01-09', null from {table} where id = 1"
    )

    project.write("snapshots/marked.sql", (project.path / "snapshots/kept.sql").read_text().replace(
        "snapshot kept", "snapshot marked").replace("'invalidate'", "'new_record'"))  # fmt: skip
    run = project.dbt(
        "run-operation", "adopt_snapshot", "--args", "{snapshot: [kept, other]}", check=False
    )

    assert "other: no snapshot has this name" in run.log
    assert "kept: versions that last beyond the start of the next one" in run.log
    statement = next(line for line in run.log.splitlines() if "merge into" in line)
    project.spark.sql(statement.strip())
    assert "'dbt_snapshot'" in adopt(project, capsys, "kept").replace('"', "'")
    assert [row["dbt_valid_to"] for row in project.rows("kept") if row["city"] == "Bonn"] == [
        datetime(2024, 1, 9)
    ]


@pytest.mark.thorough
def test_a_table_of_fivetrans_history_mode_goes_on_as_a_history(project: Project) -> None:
    """Record 1 has changed, 2 is the same, 3 was deleted before, 4 is gone and 5 is new."""
    table, spark = project.table("h"), project.spark
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {table} (id bigint, v string, _fivetran_start timestamp,"
        " _fivetran_end timestamp, _fivetran_active boolean, _fivetran_synced timestamp)"
        " using delta"
    )
    end = "timestamp'9999-12-31 23:59:59.999 UTC'"
    rows = [
        (1, "a", "01:00:00", "timestamp'2024-01-01 01:59:59.999 UTC'", False),
        (1, "b", "02:00:00", end, True), (2, "x", "01:00:00", end, True),
        (3, "old", "01:00:00", "timestamp'2024-01-01 03:00:00 UTC'", False),
        (4, "gone", "01:00:00", end, True),
    ]  # fmt: skip
    for id, v, start, until, active in rows:
        spark.sql(
            f"insert into {table} values ({id}, '{v}', timestamp'2024-01-01 {start} UTC', {until},"
            f" {active}, timestamp'2024-01-02 00:00:00 UTC')"
        )
    kept = {(row["id"], row["v"]): row for row in project.rows("h")}
    project.model(
        "h",
        "select * from values (1L, 'c'), (2L, 'x'), (5L, 'new') as now (id, v)",
        materialized="history", unique_key="id", meta={"history": {"convention": "fivetran"}},
    )  # fmt: skip

    project.run("h")

    found = {(row["id"], row["v"]): row for row in project.rows("h")}
    assert found.keys() == kept.keys() | {(1, "c"), (5, "new")}
    for one in ((1, "a"), (2, "x"), (3, "old")):
        assert found[one] == kept[one]
    ended = {one for one, row in found.items() if not row["_fivetran_active"]}
    assert ended == {(1, "a"), (1, "b"), (3, "old"), (4, "gone")}
    gap = found[1, "c"]["_fivetran_start"] - found[1, "b"]["_fivetran_end"]
    assert gap.total_seconds() == 0.001
    assert "0 added, 0 closed" in project.run("h").message("h")


@pytest.mark.thorough
def test_a_snapshot_with_rows_for_deletions_goes_on_after_they_are_removed(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    record 2        Kiel --- [ deleted )  Kiel --- [ deleted --- here it is adopted --- Kiel
    after removal   Kiel ---)             Kiel ---)                                     Kiel
    """
    renamed = {"snapshot_meta_column_names": {"dbt_is_deleted": "gone"}}
    marks = {**CHECK, "hard_deletes": "new_record", **renamed}
    snapshot(project, "kept", **marks)
    snapshot(project, "beside", **CHECK)
    for state in LOADS[:5]:
        load(project, state)
        project.dbt("snapshot")
    refused = project.dbt(
        "run-operation", "adopt_snapshot", "--args", "{snapshot: kept}", check=False
    )
    assert "kept: rows for deletions (hard_deletes: new_record)" in refused.log
    statement = next(line for line in refused.log.splitlines() if "delete from" in line)
    project.spark.sql(statement.strip())
    before = versions(project, "kept")
    assert len(before) == len(versions(project, "beside"))

    assert "'gone'" in adopt(project, capsys, "kept").replace('"', "'")
    project.run("kept")
    assert versions(project, "kept") == before
    load(project, LOADS[5])
    project.run("kept")
    project.dbt("snapshot")

    assert open_rows(project, "kept") == open_rows(project, "beside")
    assert {row["gone"] for row in project.rows("kept")} == {"False"}

    # And back: the snapshot goes on, and marks the deletion of record 2.
    (project.path / "models/history/kept.sql").unlink()
    snapshot(project, "kept", **marks)
    load(project, [row for row in LOADS[5] if row[0] != 2])
    project.dbt("snapshot")
    marked = [row for row in project.rows("kept") if row["gone"] == "True"]
    assert [(row["id"], row["dbt_valid_to"]) for row in marked] == [(2, None)]


@pytest.mark.thorough
def test_the_open_end_of_a_snapshot_is_read_in_the_zone_of_the_session(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        snapshot(project, "kept", **{**TIMESTAMP, "dbt_valid_to_current": "to_date('9999-12-31')"})
        load(project, LOADS[0])
        project.dbt("snapshot")
        text = adopt(project, capsys, "kept")
    finally:
        project.spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert '"open_end": "9999-12-30 23:00:00 UTC"' in text.replace("'", '"')


@pytest.mark.thorough
@pytest.mark.parametrize(("type_", "zone"), [("timestamp", " 00:00:00 UTC"), ("date", "")])
def test_open_versions_that_would_not_count_as_open_are_refused(
    project: Project, type_: str, zone: str
) -> None:
    """
    table         [ a ------------- 9999-12-31
    convention    an open version ends with NULL
    """
    project.spark.sql(f"create schema {project.schema}")
    period = f"valid_from {type_}, valid_to {type_}"
    project.spark.sql(
        f"create table {project.table('h')} (id bigint, v string, {period}) using delta"
    )
    project.spark.sql(
        f"insert into {project.table('h')} values"
        f" (1, 'a', {type_}'2024-01-01', {type_}'2024-02-01'),"
        f" (1, 'b', {type_}'2024-02-01', {type_}'9999-12-31')"
    )
    model = {"materialized": "history", "unique_key": "id"}
    sql = "select 1L as id, 'b' as v"
    project.model("h", sql, **model, meta={"history": {"type": type_}})

    message = project.run("h", check=False).message("h")

    assert "the existing table cannot be adopted; nothing was written" in message, message
    assert f"set meta.history.open_end: '9999-12-31{zone}'" in message, message
    meta = {"history": {"type": type_, "open_end": f"9999-12-31{zone}"}}
    project.model("h", sql, **model, meta=meta)
    assert project.run("h").message("h").startswith("no new batch")
    assert len(project.rows("h")) == 2
