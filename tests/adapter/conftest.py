"""Runs dbt's own adapter suite on this Spark, with the package's fixes by `dispatch` and without.

The suite is written for Postgres: its statements are translated, and its projects get Delta.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures import project as suite
from pyspark.sql import SparkSession

from tests.adapter.known_failures import KNOWN_FAILURES
from tests.support.project import ROOT, SESSION, install_package

# pytest looks for fixtures among the names of this module; those below replace some of them.
globals().update(
    {name: value for name, value in vars(suite).items() if isinstance(value, type(suite.models))}
)

NUMBERS = itertools.count(1)
FILES = ("models", "seeds", "snapshots")
# The suite inserts texts into timestamps, as Postgres allows.
SETTINGS = {"spark.sql.sources.default": "delta", "spark.sql.storeAssignmentPolicy": "legacy"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.thorough)
            way = str(item.callspec.params["way"])
            name = f"{item.cls.__name__}.{item.originalname}" if item.cls else item.name
            if reason := KNOWN_FAILURES.get((name, way)):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="class", params=["package", "plain"])
def way(request: pytest.FixtureRequest) -> str:
    """With the package's fixes, or dbt-spark alone."""
    return str(request.param)


@pytest.fixture(scope="class", autouse=True)
def surroundings(spark: SparkSession) -> Iterator[None]:
    """The suite changes the environment of the process and its folder."""
    folder, environment = Path.cwd(), dict(os.environ)
    before = {name: spark.conf.get(name) for name in SETTINGS}
    for name in [name for name in os.environ if name.startswith("DBT_")]:
        del os.environ[name]
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        spark.conf.set(name, str(old))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)


@pytest.fixture(scope="class")
def prefix(way: str) -> str:
    """Of the schema; a class has a project for each way."""
    return f"adapter_{way}_{next(NUMBERS)}"


@pytest.fixture(scope="class")
def project_root(tmpdir_factory: Any, prefix: str) -> Any:
    return tmpdir_factory.mktemp(prefix)


@pytest.fixture(scope="class")
def logs_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("logs"))
    os.environ["DBT_LOG_PATH"] = folder
    return folder


@pytest.fixture(scope="class")
def dbt_profile_target() -> dict[str, Any]:
    return dict(SESSION)


@pytest.fixture(scope="class")
def packages(way: str) -> dict[str, Any]:
    return {"packages": [{"local": str(ROOT)}]} if way == "package" else {}


@pytest.fixture(scope="class")
def dbt_project_yml(
    project_root: Any, project_config_update: dict[str, Any], way: str
) -> dict[str, Any]:
    config: dict[str, Any] = {"name": "test", "profile": "test", **project_config_update}
    config["flags"] = {"send_anonymous_usage_stats": False, **config.get("flags", {})}
    for kind in FILES:
        config[kind] = {"+file_format": "delta", **config.get(kind, {})}
    if way == "package":
        order = [config["name"], "dbt_history", "dbt"]
        config["dispatch"] = [{"macro_namespace": "dbt", "search_order": order}]
        install_package(Path(project_root))
    Path(project_root, "dbt_project.yml").write_text(json.dumps(config))
    return config


def scd_id(way: str, arguments: list[str]) -> str:
    """The hash of the way's `snapshot_hash_arguments`, for arguments that are not NULL."""
    texts = [f"cast({argument} as string)" for argument in arguments]
    if way == "package":
        texts = [f"concat(length({text}), ':', {text})" for text in texts]
    return f"md5(concat_ws('|', {', '.join(texts)}))"


def translated(sql: str, way: str) -> Iterator[str]:
    """Statements of Postgres as those of Spark."""
    sql = re.sub(r"--.*", "", sql)
    sql = sql.replace("None.", "").replace('"', "`")
    sql = re.sub(r"::text", "", sql)
    sql = re.sub(r"\bTIMESTAMP WITHOUT TIME ZONE\b", "timestamp", sql, flags=re.IGNORECASE)
    sql = re.sub(r"\btext\b", "string", sql, flags=re.IGNORECASE)
    sql = re.sub(
        r"md5\((.+?)\)(?= as \w*scd_id)",
        lambda found: scd_id(way, found[1].split(" || '|' || ")),
        sql,
    )
    for statement in filter(None, map(str.strip, sql.split(";"))):
        added = re.fullmatch(
            r"(alter table (\S+)\s+add column (\w+) .+?)\s+default (.+)", statement, re.IGNORECASE
        )
        # Delta adds columns without a default.
        if added:
            yield added[1]
            yield f"update {added[2]} set {added[3]} = {added[4]}"
        else:
            yield statement


@pytest.fixture(scope="class")
def project(project_setup: Any, project_files: None, way: str) -> Any:
    for path in Path(project_setup.project_root).glob("*/*.sql"):
        path.write_text(path.read_text().replace("{{target.database}}.", ""))
    run: Callable[..., Any] = project_setup.run_sql

    def run_sql(sql: str, fetch: str | None = None) -> Any:
        answers = [run(one, fetch=fetch) for one in translated(sql.format(**names), way)]
        return answers[-1] if answers else None

    names: Mapping[str, str] = {"schema": project_setup.test_schema, "database": "None"}
    project_setup.run_sql = run_sql
    return project_setup
