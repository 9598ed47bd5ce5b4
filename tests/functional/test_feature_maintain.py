"""Operations on tables with numbered versions and on feature states, besides writing them."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from dbt.adapters.spark.session import Cursor
from pyspark.sql import SparkSession

from tests.oracle.feature_states import is_same
from tests.oracle.json_patch import apply_patch, random_documents
from tests.support.features import LOG
from tests.support.markdown import blocks, page, table_after
from tests.support.processes import fail_before
from tests.support.project import Project, Run
from tests.support.rendering import Renderer
from tests.support.tables import data_frame

pytestmark = pytest.mark.thorough

FEED = """(
    select * from values
        ('a', 'one', 'insert', 1L), ('b', 'two', 'insert', 1L),
        ('a', 'three', 'update_postimage', 2L), ('a', 'one', 'update_preimage', 2L),
        ('b', 'two', 'delete', 3L), ('c', 'four', 'insert', 3L)
    as feed(id, v, _change_type, _commit_version)
    lateral view explode(array(timestamp'2024-01-01')) times as _commit_timestamp
)"""


def test_changes_become_numbered_versions_and_can_be_rewound(
    project: Project, spark: SparkSession
) -> None:
    feed = " ".join(FEED.split())
    project.history(
        "numbered",
        f'select * from {{{{ dbt_history.batch_rows("{feed}", "id", "naksha", '
        'at="_commit_version") }} as staged',
        convention="naksha",
        max_deleted_share=None,
    )
    project.run("numbered")
    columns = ("id", "v", "txn", "txn_next")
    before = {tuple(row[name] for name in columns) for row in project.rows("numbered")}
    arguments = {"table": "numbered", "to": 1}
    project.dbt("run-operation", "rewind", "--args", json.dumps(arguments))

    rows = project.rows("numbered")
    assert before == {
        ("a", "one", 1, 2), ("b", "two", 1, 3), ("a", "three", 2, None), ("c", "four", 3, None),
    }  # fmt: skip
    now = {(row["id"], row["v"], row["txn"]) for row in rows if row["txn_next"] is None}
    assert now == {("a", "one", 4), ("b", "two", 4)}
    # All versions stay, and each version of a record has its own number.
    assert {row["v"] for row in rows} == {"one", "two", "three", "four"}
    assert len({(row["id"], row["i"]) for row in rows}) == len(rows) == 6


TRACKED = {"delta.enableRowTracking": "true"}
STATIONS = "api.Relation.create(schema='{schema}', identifier='stations')"
# Each is a history of `stations`, except for `versions`.
KEPT = {
    "stations_hx": ("select * from {{ dbt_history.hx_rows(STATIONS, 'id') }}", None),
    "stations_history": ("select * from {{ dbt_history.event_rows(STATIONS, 'id') }}", None),
    "inbox": (
        "select * from {{ dbt_history.core_temp_history([{'main': STATIONS, 'key': 'id'}]) }}",
        None,
    ),
    "core": (
        "select * from {{ dbt_history.core_history(ref('inbox')) }}",
        ["trans_id", "table", "event"],
    ),
}
VERSIONS = """
    select 'upsert' as _stage, 1 as _batch, 1 as id, timestamp'2024-01-01' as valid_from,
        cast(null as timestamp) as valid_to
    union all
    select 'upsert', 1, 2, timestamp'2024-01-01', null
    union all
    select 'earliest_start', 2, 1, timestamp'2024-02-01', null where {second}
    union all
    select 'upsert', 2, 1, timestamp'2024-02-01', null where {second}
"""


def write_run(project: Project, second: bool) -> None:
    """Write the models, and make the users' changes before the run."""
    stations = STATIONS.format(schema=project.schema)
    for name, (sql, key) in KEPT.items():
        properties = TRACKED | ({"delta.appendOnly": "false"} if name == "inbox" else {})
        config: dict[str, Any] = {"unique_key": key} if key else {}
        if name == "core":
            config["post_hook"] = "{{ dbt_history.drain_core_temp_history(ref('inbox'), this) }}"
        sql = sql.replace("STATIONS", stations)
        project.model(name, sql, materialized="history_append", tblproperties=properties, **config)
    project.history(
        "versions",
        VERSIONS.format(second=str(second).lower()),
        convention="validity",
        config={"tblproperties": TRACKED},
    )
    table = project.table("stations")
    if second:
        project.spark.sql(f"update {table} set v = 'moved' where id = 1")
        project.spark.sql(f"delete from {table} where id = 2")
        return
    project.spark.sql(f"create schema if not exists {project.schema}")
    project.spark.sql(
        f"create table {table} (id bigint, v string) using delta tblproperties "
        "('delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true')"
    )
    project.spark.sql(f"insert into {table} values (1, 'a'), (2, 'b')")


def test_each_row_of_several_tables_is_joined_to_the_run_that_wrote_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = ["versions", "stations_hx", "stations_history", "core"]
    project.model(
        "runs",
        "select * from {{ dbt_history.history_runs(["
        + ", ".join(f"ref('{name}')" for name in logged)
        + "]) }} as runs",
        materialized="history_append",
        unique_key=["invocation_id", "schema", "table", "last_version"],
    )
    for name in logged:
        project.model(
            f"{name}_by_run",
            f"select * from {{{{ dbt_history.rows_with_runs(ref('{name}'), ref('runs')) }}}}",
            materialized="view",
        )
    views = [f"{name}_by_run" for name in logged]
    writers = {
        "ann": ("nightly", "it's the first load"),
        "bob": ("console", "what came later"),
    }
    for author, (application, message) in writers.items():
        write_run(project, second=author == "bob")
        monkeypatch.setenv("DBT_HISTORY_AUTHOR", author)
        monkeypatch.setenv("DBT_HISTORY_APPLICATION", application)
        monkeypatch.setenv("DBT_HISTORY_MESSAGE", message)
        project.run(*KEPT, "versions", "runs", *views)
    # A manual change and an overwrite are no runs, and do not change which run wrote a row.
    project.spark.sql(f"insert into {project.table('stations_hx')} (id) values (9)")
    project.spark.sql(f"optimize {project.table('stations_history')}")

    runs = project.rows("runs")
    assert {row["author"]: (row["application"], row["message"]) for row in runs} == writers
    assert len({row["invocation_id"] for row in runs}) == 2
    counts = {
        (row["author"], row["table"]): (row["commits"], row["inserted"], row["updated"])
        for row in runs
    }
    assert counts == {
        ("ann", "versions"): (1, 2, 0), ("bob", "versions"): (1, 1, 1),
        ("ann", "stations_hx"): (1, 2, 0), ("bob", "stations_hx"): (1, 2, 0),
        ("ann", "stations_history"): (1, 2, 0), ("bob", "stations_history"): (1, 3, 0),
        ("ann", "core"): (1, 1, 0), ("bob", "core"): (1, 2, 0),
    }  # fmt: skip

    # Earlier runs of a table that was dropped and built again have the same versions.
    stored = project.table("runs")
    project.spark.sql(
        f"insert into {stored} by name select * except (author, at), 'eve' as author,"
        f" at - interval 1 day as at from {stored}"
    )

    def written(name: str, *columns: str) -> set[tuple[Any, ...]]:
        rows = project.rows(f"{name}_by_run")
        assert len(rows) == len(project.rows(name))
        attribution = {
            (row["_author"], row["_application"], row["_message"])
            for row in rows
            if row["_invocation_id"]
        }
        assert attribution == {(author, *rest) for author, rest in writers.items()}
        return {(row["_author"], *(row[column] for column in columns)) for row in rows}

    assert written("core", "event") == {("ann", 1), ("bob", 3), ("bob", 2)}
    assert written("stations_hx", "id", "v", "deleted") == {
        ("ann", 1, "a", False), ("ann", 2, "b", False), ("bob", 1, "moved", False),
        ("bob", 2, "b", True), (None, 9, None, None),
    }  # fmt: skip
    assert written("stations_history", "id", "_hist_event") == {
        ("ann", 1, 1), ("ann", 2, 1), ("bob", 1, 3), ("bob", 1, 4), ("bob", 2, 2),
    }  # fmt: skip
    starts = {"ann": {(2, 1)}, "bob": {(1, 1), (1, 2)}}
    found = written("versions", "id", "valid_from")
    assert {(who, id_, at.month) for who, id_, at in found} == {
        (who, *version) for who, versions in starts.items() for version in versions
    }

    off = "set tblproperties ('delta.enableRowTracking' = 'false')"
    project.spark.sql(f"alter table {project.table('core')} {off}")
    failed = project.run("core_by_run", check=False)
    assert not failed.success
    assert "rows_with_runs: this relation does not record the commit of each row" in failed.log


NESTED = [
    ("x", 1, "CREATE", None, "u1", '{"id": "x", "a": {"b": [1, {"c": 1}], "~/": 1}, "n": 1}'),
    ("x", 2, "UPDATE", "u1", "u2", '{"id": "y", "a": {"b": [1, {"c": null}, 3]}, "n": "1"}'),
    ("x", 3, "UPDATE", "u2", "u3", '{"a": {"b": {"c": 1}}, "o": {"p": 1}}'),
    ("x", 4, "DELETE", "u3", "u4", '{"a": 1}'),
    ("x", 5, "UPDATE", "gone", "u5", '{"a": 1}'),
    ("x", 6, "UPDATE", "u5", "u6", '{"a": 1}'),
    ("x", 7, "UPDATE", "u6", "u7", '{"a": {"0": {"x": 1}}}'),
    ("x", 8, "UPDATE", "u7", "u8", '{"a": [{"x": 2}]}'),
]


def test_a_reverse_patch_restores_the_predecessor(project: Project, spark: SparkSession) -> None:
    rows = ", ".join(
        f"('{id_}', {txn}L, named_struct('action', '{action}', 'puuid', "
        f"{'null' if puuid is None else repr(puuid)}, 'uuid', '{uuid}'), '{payload}')"
        for id_, txn, action, puuid, uuid, payload in NESTED
    )
    spark.sql(
        "create or replace temporary view nested_states as select id, txn, txn as i, "
        f"`@ns:com:here:xyz`, payload from values {rows} "
        "as s(id, txn, `@ns:com:here:xyz`, payload)"
    )
    project.model(
        "activity",
        "select i, patch from {{ dbt_history.feature_activity('nested_states') }} as activity",
        materialized="table",
    )
    project.run("activity")

    got = {row["i"]: row["patch"] and json.loads(row["patch"]) for row in project.rows("activity")}
    assert got == {
        1: None,
        2: [
            {"op": "replace", "path": "/a/b/1/c", "value": 1},
            {"op": "remove", "path": "/a/b/2"},
            {"op": "add", "path": "/a/~0~1", "value": 1},
            {"op": "replace", "path": "/n", "value": 1},
        ],
        3: [
            {"op": "replace", "path": "/a/b", "value": [1, {"c": None}, 3]},
            {"op": "add", "path": "/n", "value": "1"},
            {"op": "remove", "path": "/o"},
        ],
        4: None,
        5: None,
        6: [],
        7: [{"op": "replace", "path": "/a", "value": 1}],
        # The member 0 of an object is not the element 0 of an array.
        8: [{"op": "replace", "path": "/a", "value": {"0": {"x": 1}}}],
    }


def test_reverse_patches_of_random_documents_can_be_applied(
    call: Renderer, spark: SparkSession
) -> None:
    chance = random.Random(6902)
    pairs = [random_documents(chance) for _ in range(60)]
    states = [
        {"id": str(number), "i": 2 * number + is_after, "payload": json.dumps(document)}
        for number, pair in enumerate(pairs)
        for is_after, document in enumerate(pair)
    ]
    data_frame(
        spark, states, {"id": "string", "i": "bigint", "payload": "string"}
    ).createOrReplaceTempView("documents")
    spark.sql(
        "create or replace temp view pairs_of_states as select *, i as txn,"
        " named_struct('action', if(i % 2 = 0, 'CREATE', 'UPDATE'), 'uuid', cast(i as string),"
        " 'puuid', if(i % 2 = 0, null, cast(i - 1 as string))) as `@ns:com:here:xyz`"
        " from documents"
    )
    found = spark.sql(f"select i, patch from {call('feature_activity', states='pairs_of_states')}")
    patches = {row["i"]: row["patch"] and json.loads(row["patch"]) for row in found.collect()}
    for number, (before, after) in enumerate(pairs):
        restored = apply_patch(after, patches[2 * number + 1])
        assert is_same(restored, before), (before, after)


BRANCHED = ["branch", "id"]
GUIDE = page("docs/guides/feature_branches.md")
# The operations of the guide: name and arguments.
CALLS = [
    (name, yaml.safe_load(arguments))
    for name, arguments in re.findall(
        r"^dbt run-operation (\w+) --args '(.*)'$", GUIDE, re.MULTILINE
    )
]
OF_PROJECT = ("table", "writes", "branches")


def printed(name: str, branch: str = "draft") -> dict[str, Any]:
    """The arguments of the guide's call, without the names of the project's tables."""
    (call,) = (call for of, call in CALLS if of == name and call["branch"] == branch)
    return {argument: value for argument, value in call.items() if argument not in OF_PROJECT}


class Edits:
    """A log of writes on branches, its table of states, and operations on them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.log, self.branches = project.table("edits"), project.table("branches")
        self.last = 0
        project.spark.sql(f"create schema if not exists {project.schema}")
        project.history(
            "features",
            f"{{{{ dbt_history.feature_states('{self.log}', id={BRANCHED}, payload=['payload'], "
            f"json='payload', branches='{self.branches}') }}}}",
            key=BRANCHED,
            convention="naksha",
        )

    def write(self, branch: str, **values: Any) -> None:
        """One applied transaction: the new value of each feature, or None to delete it.

        A mapping is the whole content of a feature.
        """
        self.write_at(datetime(2024, 1, self.last + 1), branch, **values)

    def write_at(self, at: datetime, branch: str, **values: Any) -> None:
        self.last += 1
        rows = [
            {
                "txn": self.last,
                "position": place,
                "action": "DELETE" if value is None else "PUT",
                "id": id_,
                "app_id": "app",
                "at": at,
                "payload": json.dumps(value if isinstance(value, dict) else {"v": value}),
                "branch": branch,
            }
            for place, (id_, value) in enumerate(values.items())
        ]
        frame = data_frame(
            self.project.spark, [{name: row.get(name) for name in LOG} for row in rows], LOG
        )
        frame.write.format("delta").mode("append").saveAsTable(self.log)
        self.project.run("features")

    def operate(self, name: str, check: bool = True, **arguments: Any) -> Run:
        given = {"table": self.project.table("features"), "convention": "naksha"}
        options = json.dumps({**given, "key": BRANCHED, **arguments})
        return self.project.dbt("run-operation", name, "--args", options, check=check)

    def on_branch(self, name: str, check: bool = True, **arguments: Any) -> Run:
        return self.operate(name, check, writes=self.log, branches=self.branches, **arguments)

    def shown(self, *branches: str) -> dict[str, dict[str, int]]:
        """The content of each branch, read by one run of views."""
        for branch in branches:
            self.project.model(
                f"on_{branch}",
                f"select id, payload from {{{{ dbt_history.branch_as_of(ref('features'), "
                f"'{self.branches}', '{branch}', id={BRANCHED}) }}}} as states",
                materialized="table",
            )
        self.project.run(*(f"on_{branch}" for branch in branches))
        return {
            branch: {
                row["id"]: json.loads(row["payload"])["v"]
                for row in self.project.rows(f"on_{branch}")
            }
            for branch in branches
        }


def test_branches_of_branches_are_read_and_dropped_and_main_is_rewound(project: Project) -> None:
    edits = Edits(project)
    forks = {branch: printed("create_branch", branch) for branch in ("draft", "detail")}
    assert forks["draft"]["at"] == 1
    assert forks["detail"]["parent"] == "draft"
    for row in table_after(GUIDE, "Cells are new values"):
        _, branch, *cells = row.values()
        if branch in forks:
            edits.on_branch("create_branch", **forks.pop(branch))
        values = dict(zip("fgh", cells, strict=True))
        edits.write(
            branch, **{id_: None if new == "-" else int(new) for id_, new in values.items() if new}
        )

    # main     f1 g1 | f2                      draft reads main as of 1, detail reads draft
    # draft          '----- h1
    # detail                '----- g- h2
    assert edits.shown("main", "draft", "detail") == {
        row.pop("what is shown"): {id_: int(value) for id_, value in row.items() if value}
        for row in table_after(GUIDE, "the states of its base")
    }

    refused = edits.on_branch("drop_branch", False, branch="draft")
    assert "branch detail is based on it" in refused.log
    edits.on_branch("drop_branch", branch="detail")
    edits.on_branch("drop_branch", branch="draft")
    again = edits.on_branch("drop_branch", False, branch="draft")
    assert "there is no branch draft" in again.log

    attribution: dict[str, Any] = {
        "writes": edits.log,
        "app_id": "undo",
        "payload": ["payload"],
        "json": ["payload"],
    }
    dry = edits.operate("rewind", to=1, dry_run=True, **attribution)
    assert "would be rewound to 1: 1 writes" in dry.log
    assert project.spark.table(edits.log).count() == 6
    edits.operate("rewind", to="2024-01-01 12:00:00", **attribution)
    project.run("features")
    assert edits.shown("main") == {"main": {"f": 1, "g": 1}}
    versions = [row["txn"] for row in project.rows("features") if row["id"] == "f"]
    assert sorted(versions) == [1, 2, 5]

    # Transactions 1 to 4 are of 2024, the fifth of today. Cleaning by age stops at the oldest tag.
    edits.operate("create_tag", tag="first", at=2)
    assert "horizon 2" in edits.operate("clean_history", age="1 day").log
    edits.operate("drop_tag", tag="first")
    assert "horizon 4" in edits.operate("clean_history", age="1 day").log
    left = {(row["id"], row["txn"]) for row in project.rows("features") if row["branch"] == "main"}
    assert left == {("f", 2), ("f", 5), ("g", 1)}


def test_the_calls_of_the_guide_merge_changes_of_different_attributes(project: Project) -> None:
    """As the guide tells it, and with a conflict where its `json` is left out."""
    edits = Edits(project)
    edits.write("main", road={"lanes": 2, "name": "a"})
    edits.on_branch("create_branch", branch="draft")
    edits.write("draft", road={"lanes": 4, "name": "a"})
    edits.write("main", road={"lanes": 2, "name": "b"})
    _, changes, conflicts = (
        query.replace("'maps.branches'", f"'{edits.branches}'") for query in blocks(GUIDE, "sql")
    )
    whole = conflicts.replace(", json='payload'", "")
    assert whole != conflicts
    for name, query in (("changed", changes), ("clashes", conflicts), ("whole", whole)):
        project.model(name, query, materialized="table")
    project.run("changed", "clashes", "whole")
    (changed,) = project.rows("changed")
    assert (changed["id"], changed["change"]) == ("road", "updated")
    assert [len(project.rows(name)) for name in ("clashes", "whole")] == [0, 1]

    merge = printed("merge_branch")
    refused = edits.on_branch("merge_branch", False, **{**merge, "json": []})
    assert "road" in refused.log
    edits.on_branch("merge_branch", **merge)
    project.run("features")
    (road,) = project.spark.sql(
        f"select payload from {project.table('features')}"
        " where branch = 'main' and id = 'road' and txn_next is null"
    ).collect()
    assert json.loads(road["payload"]) == {"lanes": 4, "name": "b"}
    assert '`{"lanes": 4, "name": "b"}`' in GUIDE
    assert {row["app_id"] for row in project.spark.table(edits.log).collect()} == {
        "app",
        merge["app_id"],
    }


def test_a_cleaning_beside_a_new_base_removes_neither_base(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    txn      1        2        3
    main f   [ 1 ----)[ 2 ----)[ 3 ---
    draft    base 1                     its rebase fails after the new base is protected
    late              base 2            a cleaning up to 3 begins before the tag is there
    """
    edits = Edits(project)
    for value in (1, 2, 3):
        edits.write("main", f=value)
    edits.on_branch("create_branch", branch="draft", at=1)
    marks = project.table("history_marks")

    def tags() -> set[tuple[str, str]]:
        rows = project.spark.sql(f"select name, instant from {marks} where kind = 'tag'").collect()
        return {(row["name"], row["instant"]) for row in rows}

    rebase = printed("rebase_branch") | {"payload": ["payload"]}
    with monkeypatch.context() as patch:
        fail_before(patch, "'rebase'")
        assert not edits.on_branch("rebase_branch", False, **rebase).success
    assert tags() == {("branch:draft", "1"), ("branch:draft", "3")}
    edits.operate("clean_history", age="1 day")
    assert edits.shown("draft") == {"draft": {"f": 1}}
    edits.on_branch("rebase_branch", **rebase)
    assert edits.shown("draft") == {"draft": {"f": 3}}

    execute = Cursor.execute

    def clean_before_the_tag(self: Cursor, sql: str, *arguments: Any) -> None:
        if "insert into" in sql and "'branch:late'" in sql:
            project.spark.sql(
                f"insert into {marks} (kind, table_name, instant, recorded_at)"
                " values ('horizon', 'features', '3', current_timestamp())"
            )
        execute(self, sql, *arguments)

    monkeypatch.setattr(Cursor, "execute", clean_before_the_tag)
    refused = edits.on_branch("create_branch", False, branch="late", at=2)
    assert "a base is cleaned or is being cleaned" in refused.log
    assert "2 lies below the horizon 3" in refused.log
    assert tags() == {("branch:draft", "3")}


def test_the_tag_that_a_killed_call_has_left_is_removed_by_a_repeated_drop(
    project: Project,
) -> None:
    """Killed: create_branch before the fact of draft, drop_branch after that of other."""
    edits = Edits(project)
    edits.write("main", f=1)

    def tags() -> set[str]:
        return {row["name"] for row in project.rows("history_marks") if row["kind"] == "tag"}

    def create_draft_in_part() -> None:
        with pytest.MonkeyPatch.context() as patch:
            fail_before(patch, "'fork'")
            assert not edits.on_branch("create_branch", False, branch="draft").success

    create_draft_in_part()
    assert tags() == {"branch:draft"}
    assert project.rows("branches") == []
    edits.on_branch("drop_branch", branch="draft")
    assert tags() == set()

    edits.on_branch("create_branch", branch="other")
    create_draft_in_part()
    with pytest.MonkeyPatch.context() as patch:
        fail_before(patch, "delete from")
        assert not edits.on_branch("drop_branch", False, branch="other").success
    assert tags() == {"branch:draft", "branch:other"}
    facts = [(row["kind"], row["branch"]) for row in project.rows("branches")]
    assert sorted(facts) == [("drop", "other"), ("fork", "other")]

    # A table of branches without facts of draft may be the wrong one, and draft exist in another.
    edits.write("main", f=2)
    for branches in (project.table("no_branches"), edits.branches):
        wrong: dict[str, Any] = {"writes": edits.log, "branches": branches}
        moved = edits.operate("create_branch", False, branch="draft", **wrong)
        assert "there is no branch draft, but its tag at 1: name its table" in moved.log
        refused = edits.operate("drop_branch", False, branch="draft", **wrong)
        assert "there is no branch draft, but its tag: name its table of branches" in refused.log
    dry = edits.on_branch("drop_branch", branch="other", dry_run=True)
    assert "there is no branch other; its tag would be removed" in dry.log
    assert tags() == {"branch:draft", "branch:other"}
    repeated = edits.on_branch("drop_branch", branch="other")
    assert "there is no branch other; its tag is removed" in repeated.log
    again = edits.on_branch("drop_branch", False, branch="other")
    assert "there is no branch other\n" in again.log
    assert "drop_tag, tag: branch:draft" in refused.log
    edits.operate("drop_tag", tag="branch:draft")
    assert tags() == set()
    assert len(project.rows("branches")) == len(facts)

    create_draft_in_part()
    edits.on_branch("create_branch", branch="draft")
    assert edits.shown("draft") == {"draft": {"f": 2}}


def test_a_cleaning_leaves_all_that_branches_of_branches_read(project: Project) -> None:
    """
    txn      1       2          3          4
    main     f1 h1              h3
    draft    base 1  g1 f-                 f5, base 4 by a rebase
    detail           base 2                reads draft as of 2, and main as of 1
    """
    edits = Edits(project)
    edits.write("main", f=1, h=1)
    edits.on_branch("create_branch", branch="draft")
    edits.write("draft", g=1, f=None)
    edits.on_branch("create_branch", branch="detail", parent="draft")
    edits.write("main", h=3)
    edits.write("draft", f=5)
    edits.on_branch("rebase_branch", **printed("rebase_branch"))
    project.run("features")
    expected = {"detail": {"g": 1, "h": 1}, "draft": {"f": 5, "g": 1, "h": 3}}
    assert edits.shown("detail", "draft") == expected

    edits.operate("clean_history", up_to=4)
    assert edits.shown("detail", "draft") == expected

    # Below the horizon only the points of tags can be read.
    for at, is_read in ((1, True), (3, False), (4, True)):
        project.model(
            f"main_at_{at}",
            f"select id from {{{{ dbt_history.branch_as_of(ref('features'), "
            f"'{edits.branches}', 'main', at={at}, id={BRANCHED}) }}}} as states",
            materialized="table",
        )
        run = project.dbt("run", "--select", f"main_at_{at}", check=False)
        assert run.success == is_read, run.log
    assert {row["id"] for row in project.rows("main_at_1")} == {"f", "h"}


def test_a_run_whose_writes_made_no_state_is_recorded(project: Project) -> None:
    """
    txn      1      2      3             4                5              6
    main     f1            -             f2, by merge     f deleted      f purged
    draft           f2     no such branch
    """
    edits = Edits(project)
    edits.write("main", f=1)
    edits.on_branch("create_branch", branch="draft")
    edits.write("draft", f=2)
    edits.write("nowhere", f=3)
    assert sorted(row["txn"] for row in project.rows("features")) == [1, 2]

    merge = printed("merge_branch")
    rows = [{**dict.fromkeys(LOG), "txn": 4, "position": 0, "action": "PUT", "branch": "nowhere",
             "id": "f", "app_id": "app", "at": datetime(2024, 1, 4)}]  # fmt: skip
    late = data_frame(project.spark, rows, LOG).write.format("delta").mode("append")
    late.saveAsTable(edits.log)
    refused = edits.on_branch("merge_branch", False, **merge)
    assert "the log is ahead of the states by 1 writes" in refused.log
    project.spark.sql(f"delete from {edits.log} where txn = 4")
    assert "1 writes on main transaction 4" in edits.on_branch("merge_branch", **merge).log
    edits.last = 4
    project.run("features")
    edits.write("main", f=None)
    purge = [{**rows[0], "txn": 6, "action": "PURGE", "branch": "main"}]
    data_frame(project.spark, purge, LOG).write.format("delta").mode("append").saveAsTable(
        edits.log
    )
    project.run("features")

    # The last transaction is the purge, though no state starts or ends with it.
    assert "features is 6" in edits.operate("create_tag", tag="purged").log
    # A purge is a change: its tombstone, of 5, is there until its transaction is cleaned.
    assert "horizon 5" in edits.operate("clean_history", up_to=5).log
    assert [row["purged_txn"] for row in project.rows("features") if row["txn"] == 5] == [6]
    assert "horizon 6" in edits.operate("clean_history", up_to=6).log
    assert 5 not in {row["txn"] for row in project.rows("features")}


def test_an_old_time_after_a_young_one_does_not_make_the_young_one_old(project: Project) -> None:
    edits = Edits(project)
    edits.write("main", f=1)
    edits.write_at(datetime.now(), "main", f=2)
    edits.write_at(datetime(2024, 1, 2), "main", f=3)
    edits.operate("clean_history", age="90 days")
    assert {row["txn"] for row in project.rows("features")} == {1, 2, 3}


@pytest.mark.parametrize("runs", [(2, 3, 4, 5), (4, 5), (5,)])
def test_a_state_kept_for_a_tag_keeps_its_end(
    project: Project, spark: SparkSession, runs: tuple[int, ...]
) -> None:
    """
    Two closed states of f are kept, and the one at the tag.

    txn      1        2        3        4        5
    f        [ 1 ----)[ 2      [ 3 ----)[ 4 ----)[ 5      2 is removed
    tag      here
    """

    def arrive(up_to: int) -> None:
        spark.sql(
            "create or replace temporary view tagged_log as select txn, 0 as position,"
            " 'PUT' as action, 'f' as id, 'app' as app_id, timestamp'2024-01-01' as at, txn as v"
            f" from range(1, {up_to + 1}) as writes(txn)"
        )
        project.run("tagged")

    project.history(
        "tagged",
        "{{ dbt_history.feature_states('tagged_log', payload='v', keep_states=2) }}",
        convention="naksha",
    )
    arrive(1)
    tag = {"tag": "first", "table": "tagged", "at": 1}
    project.dbt("run-operation", "create_tag", "--args", json.dumps(tag))
    for up_to in runs:
        arrive(up_to)

    kept = sorted((row["txn"], row["txn_next"]) for row in project.rows("tagged"))
    assert kept == [(1, 2), (3, 4), (4, 5), (5, None)]


def test_a_snapshot_names_one_transaction_in_all_spaces_or_in_none(
    project: Project, spark: SparkSession
) -> None:
    log, spaces = project.table("edits"), ["pois", "roads"]
    of_space = {name: f"(select * from {log} where space = '{name}')" for name in spaces}
    spark.sql(f"create schema if not exists {project.schema}")
    for name in spaces:
        project.history(
            name,
            f'{{{{ dbt_history.feature_states("{of_space[name]}", payload=["payload"]) }}}}',
            convention="naksha",
        )

    def write(*transactions: tuple[int, str, str]) -> None:
        rows = [
            {
                **dict.fromkeys(LOG), "txn": txn, "position": 0, "action": "PUT", "space": space,
                "id": "f", "app_id": "app", "at": datetime(2024, 1, txn), "payload": payload,
            }
            for txn, space, payload in transactions
        ]  # fmt: skip
        data_frame(spark, rows, LOG).write.format("delta").mode("append").saveAsTable(log)

    def snapshot(name: str, check: bool = True, **more: Any) -> str:
        given = {"snapshot": name, "writes": of_space, **more}
        arguments = ["create_snapshot", "--args", json.dumps(given)]
        return project.dbt("run-operation", *arguments, check=check).log

    def marks() -> set[tuple[str, str, str]]:
        found = project.rows("history_marks")
        return {(row["name"], row["table_name"], row["instant"]) for row in found}

    # edits    1 roads   2 pois   3 roads | 4 pois   not applied yet
    write((1, "roads", "a1"), (2, "pois", "p1"), (3, "roads", "a2"))
    project.run(*spaces)
    write((4, "pois", "p2"))
    refused = snapshot("7", check=False)
    assert "7 is not a valid name" in refused
    assert "pois: 1 writes up to 4 are not applied yet" in refused
    assert not spark.catalog.tableExists(project.table("history_marks"))

    project.run("pois")
    assert "release is 4 of pois, roads" in snapshot("release")
    assert marks() == {("release", "pois", "4"), ("release", "roads", "4")}
    assert len({row["recorded_at"] for row in project.rows("history_marks")}) == 1
    assert "release is 4 of pois, roads, as it was" in snapshot("release")

    # Killed after writing one of two spaces, and repeated after later transactions: the same.
    spark.sql(f"delete from {project.table('history_marks')} where table_name = 'pois'")
    write((5, "roads", "a3"))
    for name in spaces:
        project.model(
            f"{name}_then",
            "select payload from "
            f"{{{{ dbt_history.as_of(ref('{name}'), 'tag:release', 'naksha') }}}}",
            materialized="view",
        )
    project.run(*spaces, "pois_then", "roads_then")
    assert "release is 4 of pois, roads" in snapshot("release")
    assert marks() == {("release", "pois", "4"), ("release", "roads", "4")}
    again = snapshot("release", check=False)
    assert "pois: the snapshot exists already, at 4, not 5" in again
    assert "roads: the snapshot exists already, at 4, not 5" in again

    def read() -> list[str]:
        return [row["payload"] for name in spaces for row in project.rows(f"{name}_then")]

    assert read() == ["p2", "a2"]
    clean = ["clean_history", "--args", json.dumps({"table": "all", "up_to": 5})]
    refused = project.dbt("run-operation", *clean, check=False).log
    assert "this transaction does not exist" in refused, "pois ends at 4"
    clean = ["clean_history", "--args", json.dumps({"table": "roads", "up_to": 5})]
    project.dbt("run-operation", *clean)
    assert {row["payload"] for row in project.rows("roads")} == {"a2", "a3"}
    assert read() == ["p2", "a2"]
    assert "as it was" in snapshot("release", at=4), "also below the horizon, which it outlives"
    low = snapshot("before", check=False, at=3)
    assert "roads: 3 lies below the horizon 5" in low
    project.dbt("run-operation", "drop_tag", "--args", json.dumps({"tag": "release"}))
    assert {name for name, _, _ in marks()} == {None}
    with pytest.raises(Exception, match="there is no tag of this name"):
        read()
