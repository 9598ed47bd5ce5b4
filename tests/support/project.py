"""A dbt project of the tests that installs the package; dbt runs on this process's Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.support.delta_log import expire_log, forget_logs

ROOT = Path(__file__).parents[2]
NAME = "history_tests"
SCHEMA = "tests"
# Spark's defaults; the checkout's settings interpret (docs/decisions/0004).
COMPILED: dict[str, bool | float | int | str | None] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}

SESSION = {
    "type": "spark",
    "method": "session",
    "host": "unused",
    "schema": SCHEMA,
    "threads": 1,
}


def profiles(targets: Mapping[str, Any]) -> dict[str, Any]:
    """The tests' profile; dbt uses the first target."""
    return {NAME: {"target": next(iter(targets)), "outputs": dict(targets)}}


PROFILE = profiles({"session": SESSION})


def install_package(project: Path, root: Path = ROOT) -> None:
    """Install the package in a project as `dbt deps` does, without the examples.

    A project that installs the package has none of the examples enabled, but dbt parses them and
    reads them again in every run.
    """
    package = project / "dbt_packages" / "dbt_history"
    package.mkdir(parents=True)
    for name in ("dbt_project.yml", "macros"):
        (package / name).symlink_to(root / name)


def _keep(event: Any, lines: list[str]) -> None:
    """Collect dbt's log messages above debug level."""
    if event.info.level not in ("debug", "test"):
        lines.append(event.info.msg)


@dataclass(frozen=True)
class Run:
    """The outcome of one dbt command: its results by node name, and its log."""

    results: Mapping[str, Any]
    log: str
    success: bool

    def message(self, name: str) -> str:
        """The final message of a model or test."""
        return str(self.results[name].message)


@dataclass
class Project:
    """The tests' dbt project; `schema` is the schema of the current test's models."""

    path: Path
    spark: SparkSession
    schema: str = SCHEMA
    _written: list[Path] = field(default_factory=list)

    @classmethod
    def create(
        cls, path: Path, spark: SparkSession, targets: Mapping[str, Any] | None = None
    ) -> Project:
        """Create a project at `path` that has the package installed.

        dbt uses the first of `targets`; without targets it uses the session of this process.
        """
        for folder in ("models", "macros"):
            (path / folder).mkdir(parents=True)
        install_package(path)
        (path / "packages.yml").write_text(json.dumps({"packages": [{"local": str(ROOT)}]}))
        (path / "dbt_project.yml").write_text(
            json.dumps(
                {
                    "name": NAME,
                    "version": "1.0.0",
                    "profile": NAME,
                    "flags": {"send_anonymous_usage_stats": False},
                    "dispatch": [
                        {"macro_namespace": "dbt", "search_order": [NAME, "dbt_history", "dbt"]}
                    ],
                }
            )
        )
        profile = profiles(targets) if targets else PROFILE
        (path / "profiles.yml").write_text(json.dumps(profile))
        return cls(path, spark)

    def write(self, path: str, text: str) -> None:
        """Write a file of the project; it is removed when the test ends."""
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self._written.append(target)

    def model(self, name: str, sql: str, **config: Any) -> None:
        """Write a model into the test's schema."""
        arguments = {"schema": self.schema.removeprefix(SCHEMA + "_"), **config}
        settings = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        self.write(f"models/{name}.sql", f"{{{{ config({settings}) }}}}\n\n{sql}\n")

    def history(self, name: str, sql: str, key: str | Sequence[str] = "id", **history: Any) -> None:
        """Write a `history_batch` model; `history` becomes `meta.history`, `config` the rest.

        Without a convention it is `fivetran`. Tests look at the commit of each batch;
        `batches_per_commit=None` is the package's default.
        """
        if "start" not in history:
            history.setdefault("convention", "fivetran")
        history.setdefault("batches_per_commit", 1)
        config = history.pop("config", {})
        key = key if isinstance(key, str) else list(key)
        self.model(
            name,
            sql,
            materialized="history_batch",
            unique_key=key,
            meta={"history": history},
            **config,
        )

    def clear(self) -> None:
        """Remove the files that the test wrote."""
        for path in self._written:
            path.unlink(missing_ok=True)
        self._written.clear()

    def dbt(self, *arguments: str, check: bool = True) -> Run:
        """Run a dbt command in this process; with `check`, the test fails if the command does."""
        lines: list[str] = []
        runner = dbtRunner(callbacks=[lambda event: _keep(event, lines)])
        command, *options = arguments
        done = runner.invoke(
            [
                command,
                "--project-dir",
                str(self.path),
                "--profiles-dir",
                str(self.path),
                "--log-path",
                str(self.path / "logs"),
                "--target-path",
                str(self.path / "target"),
                "--quiet",
                # Writing the manifest takes half of dbt's own time per run; tests that read dbt's
                # artifacts pass --write-json.
                "--no-write-json",
                *options,
            ]
        )
        log = "\n".join(lines)
        if check and not done.success:
            raise AssertionError(f"dbt {' '.join(arguments)} failed\n{done.exception}\n{log}")
        results = getattr(done.result, "results", None) or []
        named = {result.node.name: result for result in results if hasattr(result, "node")}
        return Run(named, log, done.success)

    def run(self, *models: str, check: bool = True, options: Iterable[str] = ()) -> Run:
        """`dbt run --select models`."""
        return self.dbt("run", "--select", *models, *options, check=check)

    def table(self, name: str) -> str:
        """The full name of a table in the test's schema."""
        return f"{self.schema}.{name}"

    def rows(self, name: str) -> list[dict[str, Any]]:
        """All rows of a table in the test's schema, in any order."""
        return [row.asDict() for row in self.spark.table(self.table(name)).collect()]

    def log_of(self, name: str) -> list[dict[str, Any]]:
        """The commits of a table, newest first."""
        history = self.spark.sql(f"describe history {self.table(name)}")
        return [row.asDict() for row in history.collect()]

    def control(self, kind: str, *names: str) -> None:
        """`suspend_history` or `resume_history` of tables in the test's schema."""
        for name in names:
            arguments = f"{{table: {self.table(name)}}}"
            self.dbt("run-operation", f"{kind}_history", "--args", arguments)

    def expire_log(self, name: str, before: int | None = None, files: str = "*.json") -> None:
        expire_log(self.spark, self.table(name), before, files)

    def forget_logs(self) -> None:
        forget_logs(self.spark)


def drop_schema(spark: SparkSession, schema: str, warehouse: Path) -> None:
    """Remove a test's schema with its files."""
    spark.sql(f"drop schema if exists {schema} cascade")
    shutil.rmtree(warehouse / f"{schema}.db", ignore_errors=True)
