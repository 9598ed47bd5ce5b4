"""A past day of mirrors, event tables and version tables together, and what a revert writes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest
from dbt.adapters.spark.session import Cursor
from pyspark.sql import SparkSession

from tests.support.project import Project, Run

FEED = "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true'"
LOGS = ["network_hx", "station_hx", "visit_events", "prices"]


def rows_of(project: Project, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query over tables of the test's schema, sorted."""
    return sorted((tuple(row) for row in project.spark.sql(sql).collect()), key=str)


def operate(project: Project, name: str, check: bool = True, **arguments: Any) -> Run:
    return project.dbt("run-operation", name, "--args", json.dumps(arguments), check=check)


def now(spark: SparkSession) -> str:
    """The present in UTC, with some milliseconds before and after it."""
    time.sleep(0.01)
    text = spark.sql("select cast(current_timestamp() as string)").collect()[0][0]
    time.sleep(0.01)
    return f"{text} UTC"


def run_events(project: Project) -> None:
    """Write the model `visit_events`, the event table of `visit`, and run it."""
    relation = f"api.Relation.create(schema='{project.schema}', identifier='visit')"
    project.model(
        "visit_events",
        f"select * from {{{{ dbt_history.event_rows({relation}, 'id') }}}}",
        materialized="history_append",
    )
    project.run("visit_events")


def write_models(project: Project) -> None:
    def main(name: str) -> str:
        return f"api.Relation.create(schema='{project.schema}', identifier='{name}')"

    network = "{'column': 'network_id', 'history': ref('network_hx'), 'key': 'id'}"
    for name, rows in (
        ("network_hx", f"hx_rows({main('network')}, 'id')"),
        ("station_hx", f"hx_rows({main('station')}, 'id', references=[{network}])"),
        ("visit_events", f"event_rows({main('visit')}, 'id')"),
    ):
        project.model(
            name, f"select * from {{{{ dbt_history.{rows} }}}}", materialized="history_append"
        )
    project.model(
        "prices",
        f"select * from {{{{ {main('price')} }}}}",
        materialized="history",
        unique_key="id",
        meta={"history": {"convention": "validity"}},
    )


# A main table (id, v, x), its columns now and the first day's columns under these names, and its
# changes before the second and before the third run.
RENAMES: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "renamed": (
        {"w": "v", "x": "x"},
        ["rename column v to w", "update set w = 'c' where id = 2"],
        ["update set w = null where id = 1"],
    ),
    "renamed_back": (
        {"v": "v", "x": "x"},
        ["rename column v to w", "update set w = 'c' where id = 2"],
        ["rename column w to v", "update set v = 'd' where id = 3"],
    ),
    "renamed_back_at_once": (
        {"v": "v", "x": "x"},
        ["rename column v to w", "update set w = 'c' where id = 2", "rename column w to V"],
        ["update set v = null where id = 1"],
    ),
    "name_used_again": (
        {"w": "v", "x": "x", "v": "null"},
        ["update set v = 'e' where id = 1", "rename column v to w", "add columns (v string)"],
        ["update set w = null, v = 'new' where id = 2", "update set x = 'y' where id = 1"],
    ),
    "name_used_and_left_again": (
        {"w": "v", "x": "x", "y": "null", "v": "null"},
        ["rename column v to w", "add columns (v string)", "update set v = 'n', w = null"],
        ["rename column v to y", "add columns (v string)", "update set v = 'm' where id = 2"],
    ),
    "name_used_in_between": (
        {"w": "v", "x": "x"},
        ["rename column v to w"],
        ["add columns (v string)", "update set v = 'n', w = null", "drop column v"],
    ),
    "exchanged": (
        {"x": "v", "v": "x"},
        ["update set v = 'f' where id = 3", "rename column v to `t t`", "rename column x to v"],
        ["update set `t t` = null", "rename column `t t` to x", "update set v = null where id = 1"],
    ),
    "name_of_a_dropped_column": (
        {"x": "v"},
        ["drop column x", "update set v = 'g' where id = 2"],
        ["rename column v to x", "update set x = 'h' where id = 3"],
    ),
    "restored": (
        {"v": "v", "x": "x"},
        ["rename column v to w", "update set w = 'c' where id = 2"],
        ["restore", "update set x = 'y' where id = 3"],
    ),
    "restored_at_once": (
        {"v": "v", "x": "x"},
        ["rename column v to w", "update set w = 'c' where id = 2", "restore"],
        ["update set v = null where id = 1"],
    ),
}


@pytest.fixture
def days(project: Project, spark: SparkSession) -> Iterator[dict[str, str]]:
    """Four tables with their histories; the times of two days between their changes.

    network   1 EC   ----------- | day 1 | -- 1 ECCC ------------------- | day 2 | --
    station   1 of 1, 2 of 1 --- |       | -- 1 moved, 2 gone, 3 of 2 -- |       | --
    visit     1 fog  ----------- |       | -- 1 sun, 2 rain ------------ |       | --
    price     1 5.0  ----------- |       | -- 1 6.0 -------------------- |       | --
    """
    schema = project.schema
    spark.sql(f"create schema if not exists {schema}")
    for name, columns in (
        ("network", "id bigint, name string"),
        ("station", "id bigint, network_id bigint, place string"),
        ("visit", "id bigint, weather string"),
        ("price", "id bigint, amount double"),
    ):
        spark.sql(f"create table {schema}.{name} ({columns}) using delta tblproperties ({FEED})")
    before = now(spark)
    spark.sql(f"insert into {schema}.network values (1, 'EC')")
    spark.sql(f"insert into {schema}.station values (1, 1, 'hill'), (2, 1, null)")
    spark.sql(f"insert into {schema}.visit values (1, 'fog')")
    spark.sql(f"insert into {schema}.price values (1, 5.0)")
    write_models(project)
    project.run(*LOGS)
    first = now(spark)
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", '{"user": "lee"}')
    spark.sql(f"update {schema}.network set name = 'ECCC'")
    spark.sql(f"insert into {schema}.network values (2, 'BCH')")
    spark.sql(f"update {schema}.station set place = 'dale' where id = 1")
    spark.sql(f"delete from {schema}.station where id = 2")
    spark.sql(f"insert into {schema}.station values (3, 2, 'lake')")
    spark.sql(f"merge into {schema}.visit as main using (select 1 as id, 'sun' as weather"
              " union all select 2, 'rain') as new on main.id = new.id"
              " when matched then update set * when not matched then insert *")  # fmt: skip
    spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    spark.sql(f"update {schema}.price set amount = 6.0")
    project.run(*LOGS)
    yield {"before": before, "first": first, "second": now(spark), "view": f"{schema}_day"}
    spark.sql(f"drop schema if exists {schema}_day cascade")


@pytest.mark.thorough
def test_bookmarks_of_all_kinds_of_tables_show_one_day_and_what_changed_since(
    project: Project, spark: SparkSession, days: dict[str, str]
) -> None:
    day, schema = days["view"], project.schema
    refused = operate(project, "create_tag", check=False, tag="x", at=days["before"])
    assert "visit_events: " + days["before"][:16] in refused.log
    assert "is before its first rows" in refused.log
    operate(project, "create_tag", tag="first", at=days["first"])
    operate(project, "create_tag", tag="second")

    operate(project, "create_point_in_time", schema=day, at="tag:first")

    assert rows_of(project, f"select * from {day}.network") == [(1, "EC")]
    assert rows_of(project, f"select * from {day}.station") == [(1, 1, "hill"), (2, 1, None)]
    assert rows_of(project, f"select * from {day}.visit") == [(1, "fog")]
    assert rows_of(project, f"select id, amount from {day}.prices") == [(1, 5.0)]

    project.write(
        "macros/bookmarks.sql",
        """{% macro bookmarks() %}
        {% set station, visit = ref('station_hx'), ref('visit_events') %}
        {% for name, sql in {
            'moved': 'select `_change_type`, id, place from ' ~ dbt_history.changeset(
                station, 'tag:first', 'tag:second'),
            'seen': 'select `_change_type`, id, weather from ' ~ dbt_history.changeset(
                visit, 'tag:first', 'tag:second'),
            'bracket': 'select id, place from ' ~ dbt_history.latest(
                station, 'id', up_to='tag:second', after='tag:first'),
            'bounds': 'select * from ' ~ dbt_history.history_tuple(
                [ref('network_hx'), station], at='tag:first'),
            'then': 'select id, place from ' ~ dbt_history.as_of(station, 'tag:first'),
        }.items() %}
            {% for row in run_query(sql ~ ' as found').rows %}
                {% do log(name ~ ' ' ~ row.values() | list, info=true) %}
            {% endfor %}
        {% endfor %}
        {% endmacro %}""",
    )
    lines = operate(project, "bookmarks").log
    for line in (
        "moved ['update_preimage', 1, 'hill']", "moved ['update_postimage', 1, 'dale']",
        "moved ['delete', 2, None]", "moved ['insert', 3, 'lake']",
        "seen ['update_preimage', 1, 'fog']", "seen ['update_postimage', 1, 'sun']",
        "seen ['insert', 2, 'rain']", "bracket [1, 'dale']", "bracket [3, 'lake']",
        "bounds [1, 2]", "then [1, 'hill']", "then [2, None]",
    ):  # fmt: skip
        assert line in lines
    assert "bracket [2" not in lines

    operate(project, "create_point_in_time", schema=day, at="now", mod_columns=True)
    network = f"select id, name, mod_user, mod_time > '{days['first'][:-4]}' from {day}.network"
    assert rows_of(project, network) == [(1, "ECCC", "lee", True), (2, "BCH", "lee", True)]
    assert rows_of(project, f"select id, weather, mod_user from {day}.visit") == [
        (1, "sun", "lee"),
        (2, "rain", "lee"),
    ]

    assert "no differences" in operate(project, "verify_history").log
    spark.sql(f"alter table {schema}.visit_events set tblproperties (delta.appendOnly = false)")
    spark.sql(f"update {schema}.visit_events set weather = 'snow' where weather = 'rain'")
    found = operate(project, "verify_history", check=False, table=["visit_events"]).log
    assert "was written by UPDATE" in found
    assert "1 current versions are not in" in found

    both = operate(
        project, "create_point_in_time", check=False, schema=schema, at="now", table="network_hx"
    )
    assert "lies in the schema" in both.log


@pytest.mark.thorough
def test_a_main_table_is_reverted_in_one_merge_that_its_mirror_records(
    project: Project, spark: SparkSession, days: dict[str, str]
) -> None:
    schema = project.schema
    station, visit = f"{schema}.station", f"{schema}.visit"
    revert: dict[str, Any] = {
        "main": station,
        "to": days["first"],
        "author": "kim",
        "reason": "undo",
    }
    versions = len(project.log_of("station"))

    dry = operate(project, "revert_table", dry_run=True, **revert)

    counts = "rows inserted 1, updated 1, deleted 1"
    assert f"would be reverted to {days['first'][:19]}" in dry.log
    assert counts in dry.log
    assert len(project.log_of("station")) == versions

    assert counts in operate(project, "revert_table", **revert).log

    then = [(1, 1, "hill"), (2, 1, None)]
    assert rows_of(project, f"select id, network_id, place from {station}") == then
    commit = project.log_of("station")[0]
    assert (commit["version"], commit["operation"]) == (versions, "MERGE")
    assert json.loads(commit["userMetadata"])["message"] == "undo"
    assert not spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", "")
    before = spark.table(f"{schema}.station_hx").count()
    # Until the mirror has read the revert, the next one is refused.
    again = operate(project, "revert_table", check=False, **revert)
    assert f"station_hx has not read version {versions}" in again.log

    project.run("station_hx")

    mirror = f"select id, place, deleted, mod_user from {schema}.station_hx"
    assert rows_of(project, f"{mirror} where station_hx_id > {before}") == [
        (1, "hill", False, "kim"),
        (2, None, False, "kim"),
        (3, "lake", True, "kim"),
    ]
    assert "inserted 0, updated 0, deleted 0" in operate(project, "revert_table", **revert).log
    # A revert is reverted, and an event table is a history as good as a mirror.
    operate(project, "revert_table", main=station, to=days["second"])
    operate(project, "revert_table", main=visit, to=days["first"])
    assert rows_of(project, f"select id, place from {station}") == [(1, "dale"), (3, "lake")]
    assert rows_of(project, f"select * from {visit}") == [(1, "fog")]


@pytest.mark.thorough
def test_a_main_table_with_an_identity_column_is_reverted_where_delta_can_write_it(
    project: Project, spark: SparkSession
) -> None:
    """`outside` has its identity column outside the key, and a generated column."""
    schema = project.schema
    spark.sql(f"create schema if not exists {schema}")
    key = {"by_default": "id", "always": "id", "outside": "v"}
    mirrors = [f"{name}_hx" for name in key]
    for name, columns in (
        ("by_default", "id bigint generated by default as identity, v string"),
        ("always", "id bigint generated always as identity, v string"),
        (
            "outside",
            "id bigint generated by default as identity, v string, x int,"
            " y int generated always as (x + 1)",
        ),
    ):
        spark.sql(f"create table {schema}.{name} ({columns}) using delta tblproperties ({FEED})")
        added = "(v, x) values ('a', 1), ('b', 2)" if name == "outside" else (
            "(v) values ('a'), ('b')"
        )  # fmt: skip
        spark.sql(f"insert into {schema}.{name} {added}")
        relation = f"api.Relation.create(schema='{schema}', identifier='{name}')"
        project.model(
            f"{name}_hx",
            f"select * from {{{{ dbt_history.hx_rows({relation}, '{key[name]}') }}}}",
            materialized="history_append",
        )
    project.run(*mirrors)
    first = now(spark)

    def revert(name: str, check: bool = True, dry: bool = False) -> Run:
        return operate(
            project, "revert_table", check, main=f"{schema}.{name}", to=first, dry_run=dry
        )

    def rows(name: str) -> list[tuple[Any, ...]]:
        return rows_of(project, f"select * from {schema}.{name}")

    then = {name: rows(name) for name in key}
    # Updates do not name the identity column.
    spark.sql(f"update {schema}.by_default set v = 'c' where id = 1")
    spark.sql(f"delete from {schema}.by_default where id = 2")
    spark.sql(f"update {schema}.always set v = 'c' where id = 1")
    spark.sql(f"insert into {schema}.always (v) values ('new')")
    spark.sql(f"update {schema}.outside set x = 7 where v = 'a'")
    spark.sql(f"delete from {schema}.outside where v = 'b'")
    project.run(*mirrors)

    for name, counts in (
        ("by_default", "rows inserted 1, updated 1, deleted 0"),
        ("always", "rows inserted 0, updated 1, deleted 1"),
        ("outside", "rows inserted 1, updated 1, deleted 0"),
    ):
        assert counts in revert(name).log
        assert rows(name) == then[name]
    project.run(*mirrors)

    # Values that Delta would not write are refused, by a dry run, too.
    spark.sql(f"delete from {schema}.always where id = 2")
    spark.sql(f"delete from {schema}.outside where v = 'a'")
    spark.sql(f"insert into {schema}.outside (id, v, x) values (70, 'a', 1)")
    project.run(*mirrors)
    for name, reason in (
        ("always", "1 rows (insert) would need their former values of id"),
        ("outside", "1 rows (update) have another value of id now"),
    ):
        before, commits = rows(name), len(project.log_of(name))
        for dry in (True, False):
            refused = revert(name, check=False, dry=dry)
            assert not refused.success
            assert reason in refused.log
        assert (rows(name), len(project.log_of(name))) == (before, commits)


@pytest.mark.thorough
def test_a_log_has_nothing_to_read_of_an_optimized_main_table(
    project: Project, spark: SparkSession
) -> None:
    """Not so of one with a renamed column, which the log does not know yet."""
    main = f"{project.schema}.visit"
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(
        f"create table {main} (id bigint, weather string) using delta"
        f" tblproperties ({FEED}, 'delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"insert into {main} values (1, 'fog')")
    run_events(project)
    first = now(spark)
    spark.sql(f"insert into {main} values (2, 'sun')")
    project.run("visit_events")

    spark.sql(f"optimize {main}")
    assert project.log_of("visit")[0]["operation"] == "OPTIMIZE"
    # The files of the version that the log has read are removed.
    setting = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(setting, "false")
    spark.sql(f"vacuum {main} retain 0 hours")
    spark.conf.unset(setting)

    tagged = operate(project, "create_tag", tag="optimized", table="visit_events")
    assert "has not read" not in tagged.log
    assert "no differences" in operate(project, "verify_history", table="visit_events").log
    operate(project, "revert_table", main=main, to=first)
    assert rows_of(project, f"select * from {main}") == [(1, "fog")]

    project.run("visit_events")
    spark.sql(f"alter table {main} rename column weather to sky")
    version = project.log_of("visit")[0]["version"]
    refused = operate(project, "revert_table", check=False, main=main, to=first)
    assert f"visit_events has not read version {version} of" in refused.log


@pytest.mark.thorough
def test_a_suspension_that_a_restore_has_undone_does_not_count(
    project: Project, spark: SparkSession
) -> None:
    """
    main    fog            sun                         hail         wind
    log     fog  [suspend       restore )  sun  [suspend      resume )   wind
                      lost                          between
    """
    main, log = f"{project.schema}.visit", f"{project.schema}.visit_events"
    spark.sql(f"create schema if not exists {project.schema}")
    spark.sql(f"create table {main} (id bigint, weather string) using delta tblproperties ({FEED})")
    spark.sql(f"insert into {main} values (1, 'fog')")
    run_events(project)
    version = project.log_of("visit_events")[0]["version"]

    def tag(name: str, check: bool = True, **more: Any) -> str:
        return operate(project, "create_tag", check, tag=name, table="visit_events", **more).log

    operate(project, "suspend_history", table="visit_events")
    lost = now(spark)
    spark.sql(f"update {main} set weather = 'sun'")
    assert "when it was suspended; points after resume_history are known again" in tag("a", False)

    spark.sql(f"restore table {log} to version as of {version}")
    project.run("visit_events")
    tag("restored")
    tag("lost", at=lost)
    operate(
        project, "create_point_in_time", schema=f"{project.schema}_lost", at=lost,
        table="visit_events",
    )  # fmt: skip
    assert rows_of(project, f"select weather from {project.schema}_lost.visit") == [("fog",)]
    spark.sql(f"drop schema {project.schema}_lost cascade")

    operate(project, "suspend_history", table="visit_events")
    between = now(spark)
    spark.sql(f"update {main} set weather = 'hail'")
    spark.sql(f"update {main} set weather = 'wind'")
    operate(project, "resume_history", table="visit_events")
    project.run("visit_events")
    tag("resumed")
    assert "where the changes were not read one by one" in tag("b", False, at=between)


@pytest.mark.thorough
def test_a_revert_that_the_history_cannot_know_is_refused_before_it_writes(
    project: Project, spark: SparkSession, days: dict[str, str]
) -> None:
    schema = project.schema

    def refusal(main: str = "station", **arguments: Any) -> str:
        before = rows_of(project, f"select * from {schema}.{main}")
        commits = len(project.log_of(main))
        run = operate(
            project, "revert_table", check=False,
            **{"main": f"{schema}.{main}", "to": days["first"], **arguments},
        )  # fmt: skip
        assert not run.success
        assert "nothing was written" in run.log
        assert rows_of(project, f"select * from {schema}.{main}") == before
        assert len(project.log_of(main)) == commits
        return run.log

    assert "is before its first rows" in refusal(to=days["before"])
    assert "is in the future" in refusal(to="2999-01-01")
    assert "no mirror or event table of it" in refusal("price")
    assert "it is a history table itself" in refusal("prices")
    assert (
        "there is no tag of this name"
        in operate(
            project, "revert_table", check=False, main=f"{schema}.station", to="tag:none"
        ).log
    )
    # Between a suspension and its resumption the states are not known.
    operate(project, "suspend_history", table="visit_events")
    spark.sql(f"update {schema}.visit set weather = 'hail' where id = 1")
    assert "visit_events is suspended" in refusal("visit")
    lost = now(spark)
    spark.sql(f"update {schema}.visit set weather = 'wind' where id = 1")
    operate(project, "resume_history", table="visit_events")
    project.run("visit_events")
    assert "not read one by one" in refusal("visit", to=lost)
    # The main table was changed by a writer whose commit the mirror has not read.
    spark.sql(f"insert into {schema}.station values (9, 1, 'moor')")
    assert "station_hx has not read version" in refusal()
    # A column that is newer than the instant.
    spark.sql(f"alter table {schema}.station add columns (height int)")
    spark.sql(f"update {schema}.station set height = 7")
    project.run("network_hx", "station_hx")
    assert "column height has no value in station_hx up to" in refusal()
    # Rows of the mirror that were erased do not come back as NULLs.
    erased: dict[str, Any] = {"table": "network_hx", "only": {"id": 1}, "columns": ["name"]}
    operate(project, "erase_subject", **erased)
    assert "differs from it now" in refusal("network")
    spark.sql(f"update {schema}.network set name = null where id = 1")
    project.run("network_hx")
    spark.sql(f"delete from {schema}.network where id = 1")
    project.run("network_hx")
    assert "1 rows (insert) would be written with NULLs" in refusal("network")


@pytest.mark.thorough
def test_a_write_between_the_plan_of_a_revert_and_its_merge_is_never_lost(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A row that the plan writes and another writer changed: the revert fails as a whole. Any other
    row of that writer stays. The same in another time zone, with odd names and ANSI on.
    """
    schema = project.schema
    main = f"{schema}.station"
    spark.sql(f"create schema if not exists {schema}")
    spark.sql(
        f"create table {main} (`Key-Id` bigint, `pl.ace` string) using delta tblproperties ({FEED})"
    )
    spark.sql(f"insert into {main} values (1, 'hill'), (2, ''), (3, 'NULL')")
    relation = f"api.Relation.create(schema='{schema}', identifier='station')"
    project.model(
        "station_hx",
        f"select * from {{{{ dbt_history.hx_rows({relation}, 'Key-Id') }}}}",
        materialized="history_append",
    )
    project.run("station_hx")
    first = now(spark)
    operate(project, "create_tag", tag="day_1", table="station_hx", at=first)
    spark.sql(f"update {main} set `pl.ace` = null where `Key-Id` = 1")
    spark.sql(f"delete from {main} where `Key-Id` = 2")
    spark.sql(f"insert into {main} values (4, 'lake')")
    project.run("station_hx")
    execute = Cursor.execute
    settings = {"spark.sql.session.timeZone": "Pacific/Auckland", "spark.sql.ansi.enabled": "true"}
    before = {name: str(spark.conf.get(name)) for name in settings}

    def revert_beside(meanwhile: str, to: str) -> tuple[Run, list[str]]:
        """The revert in other settings, with a write of another session just before its MERGE."""
        seen: list[str] = []

        def run(self: Cursor, sql: str, *arguments: Any) -> None:
            is_merge = "merge into" in sql
            if is_merge:
                spark.newSession().sql(meanwhile)
            # The adapter sets its own parameters before each statement.
            self.server_side_parameters = {**self.server_side_parameters, **settings}
            try:
                execute(self, sql, *arguments)
            finally:
                if is_merge:
                    seen.append(str(spark.conf.get("spark.sql.ansi.enabled")))

        with monkeypatch.context() as patch:
            patch.setattr(Cursor, "execute", run)
            try:
                done = operate(project, "revert_table", check=False, main=main, to=to)
            finally:
                for name, value in before.items():
                    spark.conf.set(name, value)
        return done, seen

    table = f"select `Key-Id`, `pl.ace` from {main}"
    kept = [(1, None), (3, "NULL"), (4, "lake")]
    for meanwhile, undo, found in (
        (
            f"update {main} set `pl.ace` = 'new' where `Key-Id` = 4",
            f"update {main} set `pl.ace` = 'lake' where `Key-Id` = 4",
            [(1, None), (3, "NULL"), (4, "new")],
        ),
        (
            f"delete from {main} where `Key-Id` = 1",
            f"insert into {main} values (1, null)",
            [(3, "NULL"), (4, "lake")],
        ),
        (
            f"insert into {main} values (2, 'new')",
            f"delete from {main} where `Key-Id` = 2",
            [*kept[:1], (2, "new"), *kept[1:]],
        ),
    ):
        refused, seen = revert_beside(meanwhile, first)
        assert seen == ["true"], refused.log
        assert "another writer changed it meanwhile" in refused.log
        assert rows_of(project, table) == found
        spark.sql(undo)
        project.run("station_hx")
        assert rows_of(project, table) == kept

    done, seen = revert_beside(f"insert into {main} values (9, 'mine')", "tag:day_1")

    assert done.success
    assert seen == ["true"]
    assert rows_of(project, table) == [(1, "hill"), (2, ""), (3, "NULL"), (9, "mine")]


@pytest.mark.thorough
def test_a_past_day_has_the_columns_under_their_present_names(
    project: Project, spark: SparkSession
) -> None:
    """
    main   first rows      changes         changes
    logs              run           run             run: now and the first day, as main was then
    """
    schema, day = project.schema, f"{project.schema}_day"
    spark.sql(f"create schema if not exists {schema}")
    macros = {"hx_rows": "hx", "event_rows": "events"}
    logs = [[f"{name}_{kind}" for name in RENAMES] for kind in macros.values()]
    for name in RENAMES:
        spark.sql(
            f"create table {schema}.{name} (id bigint, v string, x string) using delta"
            f" tblproperties ({FEED}, 'delta.columnMapping.mode' = 'name')"
        )
        spark.sql(
            f"insert into {schema}.{name} values (1, 'a', 'p'), (2, 'b', null), (3, null, 'r')"
        )
        relation = f"api.Relation.create(schema='{schema}', identifier='{name}')"
        for macro, kind in macros.items():
            call = f"select * from {{{{ dbt_history.{macro}({relation}, 'id') }}}}"
            project.model(f"{name}_{kind}", call, materialized="history_append")
    project.run(*chain.from_iterable(logs))
    first = now(spark)
    begin = {name: project.log_of(name)[0]["version"] for name in RENAMES}

    for step in (1, 2):
        for name, scenario in RENAMES.items():
            for change in scenario[step]:
                table = f"{schema}.{name}"
                if change == "restore":
                    spark.sql(f"restore table {table} to version as of {begin[name]}")
                elif change.startswith("update"):
                    spark.sql(change.replace("update", f"update {table}", 1))
                else:
                    spark.sql(f"alter table {table} {change}")
        project.run(*chain.from_iterable(logs))

    verified = operate(project, "verify_history").log
    assert verified.count("no differences") == len(macros) * len(RENAMES)
    for tables in logs:
        for at in ("now", first):
            operate(project, "create_point_in_time", schema=day, at=at, table=tables)
            for name, (columns, _, _) in RENAMES.items():
                picked = ", ".join(f"{old} as {new}" for new, old in columns.items())
                expected = (
                    f"select id, {', '.join(columns)} from {schema}.{name}" if at == "now"
                    else f"select id, {picked} from {schema}.{name} version as of {begin[name]}"
                )  # fmt: skip
                shown = f"select id, {', '.join(columns)} from {day}.{name}"
                assert rows_of(project, shown) == rows_of(project, expected), (name, at, tables)
    spark.sql(f"drop schema {day} cascade")
    operate(
        project, "revert_table", main=f"{schema}.renamed_back", to=first, history="renamed_back_hx"
    )
    assert rows_of(project, f"select id, v from {schema}.renamed_back") == [
        (1, "a"), (2, "b"), (3, None),
    ]  # fmt: skip
