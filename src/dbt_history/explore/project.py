"""A dbt project opened in this process: calls macros of the package and runs their SQL.

The SQL runs over the connection of the project's profile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from pyspark.sql import SparkSession

from dbt_history.extras import not_installed
from dbt_history.operations import dbt_options
from dbt_history.session import MetastoreInUseError, is_in_use, start_session, with_catalog

PACKAGE_MESSAGE = re.compile(r"dbt_history\.\w+: ")


class ExploreError(click.ClickException):
    """The project, a table or an argument cannot be used."""


def reason(error: BaseException | str) -> str:
    """The package's own message without dbt's call stack, else the first line."""
    text = str(error).strip()
    if own := PACKAGE_MESSAGE.search(text):
        return re.split(r"\n\s*(?:> in |> called by )", text[own.start() :])[0].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # dbt's first line is only the kind of the error.
    told = [line for line in lines if line not in ("Runtime Error", "Database Error")]
    return told[0] if told else "dbt failed"


class DbtProject:
    """A parsed project and its adapter."""

    def __init__(self, adapter: Any, manifest: Any) -> None:
        self.adapter = adapter
        self.manifest = manifest
        manifest.build_flat_graph()

    @property
    def name(self) -> str:
        return str(self.manifest.metadata.project_name or "")

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """Nodes and sources as in manifest.json, by unique id."""
        graph: Mapping[str, Any] = self.manifest.flat_graph
        return {**graph["nodes"], **graph["sources"]}

    def call(self, macro: str, **arguments: Any) -> Any:
        """The result of a macro of the package. Raises ExploreError with its message."""
        try:
            return self.adapter.execute_macro(
                macro, macro_resolver=self.manifest, project="dbt_history", kwargs=arguments
            )
        except Exception as error:  # dbt and the connection raise many kinds
            raise ExploreError(reason(error)) from error

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises ExploreError with Spark's first line, MetastoreInUseError."""
        try:
            handle = self.adapter.connections.get_thread_connection().handle
            cursor = handle.cursor()
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()]
        except Exception as error:  # as above
            cause = error.__cause__ or error
            if isinstance(cause, Exception) and is_in_use(cause):
                raise MetastoreInUseError from None
            raise ExploreError(reason(error)) from error

    def session(self, name: str) -> SparkSession:
        """The Spark session of the profile, in UTC; raises MetastoreInUseError.

        A profile that names a server (thrift, http) has none: start_session configures one then.
        """
        if getattr(self.adapter.config.credentials, "method", None) != "session":
            return start_session(name)
        self.rows("select 1")  # dbt-spark starts the session with its first statement
        return with_catalog(SparkSession.active())

    def relation(self, schema: str, name: str) -> Any:
        """A relation that exists. Raises ExploreError if it does not."""
        found = self.adapter.get_relation(database=None, schema=schema, identifier=name)
        if found is None:
            raise ExploreError(f"table {schema}.{name} does not exist")
        return found

    def look_for(self, schema: str, name: str) -> None:
        """Let dbt find a table that another process made after dbt had listed the schema."""
        relation = self.adapter.Relation.create(schema=schema, identifier=name, type="table")
        if self.adapter.get_relation(database=None, schema=schema, identifier=name) is None:
            try:
                self.rows(f"describe table {relation.render()}")
            except ExploreError:
                return
            self.adapter.cache_added(relation)

    def columns(self, relation: Any) -> dict[str, str]:
        """Types by column name, both as Spark writes them."""
        described = self.rows(f"describe table {relation.render()}")
        found: dict[str, str] = {}
        for name, kind, *_ in described:
            # Below the columns are the headers of the partitioning, which have no type. The name of
            # a column may begin with `#`, too.
            if not kind:
                break
            found[name] = kind
        return found


@contextmanager
def open_project(folder: Path, profiles: Path | None, target: str | None) -> Iterator[DbtProject]:
    """Parse the project in `folder`. Raises ExploreError if dbt cannot."""
    try:
        from dbt.adapters.factory import FACTORY
        from dbt.cli.main import dbtRunner
    except ImportError:
        raise ExploreError(not_installed("dbt", "dbt")) from None
    options = ["--project-dir", str(folder), "--log-level", "none"]
    options += dbt_options(profiles, target)
    done = dbtRunner().invoke(["parse", "--quiet", "--no-write-json", *options])
    if not done.success:
        raise ExploreError(reason(done.exception or "dbt parse failed"))
    names = list(FACTORY.adapters)
    project = DbtProject(FACTORY.adapters["spark" if "spark" in names else names[0]], done.result)
    if not any(name.startswith("macro.dbt_history.") for name in project.manifest.macros):
        raise ExploreError(
            f"the dbt package dbt_history is not installed in {folder}: run dbt deps there,"
            " or name a project that has it (--project-dir)"
        )
    with project.adapter.connection_named("dbt-history"):
        yield project
