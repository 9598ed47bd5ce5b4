"""Calls the package's macros from Python, in dbt's own Jinja and a project with nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from dbt.adapters.factory import FACTORY
from dbt.cli.main import dbtRunner
from dbt_common.clients.agate_helper import table_from_data_flat

from tests.support.project import NAME, PROFILE, ROOT, install_package


class Renderer:
    """Calls a macro of the package and returns its result, without a database.

    context    variables of dbt's context that only a node has, such as `this` and `model`
    """

    def __init__(self, adapter: Any, manifest: Any) -> None:
        self._adapter = adapter
        self._manifest = manifest
        self.relation: Any = adapter.Relation
        self.context: dict[str, Any] = {}

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        # The context of a macro has the adapter that dbt made last.
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(FACTORY.adapters, "spark", self._adapter)
            return self._adapter.execute_macro(
                name,
                macro_resolver=self._manifest,
                project="dbt_history",
                context_override=self.context,
                kwargs=arguments,
            )

    def pretend_answers(self, answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
        """Answer each statement with the rows of the first key that it begins with.

        A key `begin … part` is for statements that have this part, too.
        Returns the statements executed so far, a list that grows. Any other statement fails.
        """
        executed: list[str] = []

        def execute(sql: str, **_: Any) -> tuple[str, Any]:
            statement = sql.strip()
            executed.append(statement)
            for beginning, rows in answers.items():
                begin, *parts = beginning.split(" … ")
                if statement.startswith(begin) and all(part in statement for part in parts):
                    names = list(rows[0]) if rows else []
                    return "OK", table_from_data_flat([dict(row) for row in rows], names)
            raise AssertionError(f"a statement without an answer: {statement}")

        self._adapter.execute = execute
        return executed

    def table(self, name: str) -> Any:
        """A relation of the schema `golden`."""
        return self.relation.create(schema="golden", identifier=name)

    def pretend_relations(
        self, *names: str, schema: str = "golden", views: Sequence[str] = ()
    ) -> None:
        """Make dbt find these tables and views of the schema, and no others."""
        known = {(schema, name) for name in names} | {(schema, name) for name in views}

        def get_relation(database: Any, schema: Any, identifier: Any) -> Any:
            assert schema, f"dbt cannot look up {identifier}, which has no schema"
            if (schema, identifier) not in known:
                return None
            kind = "view" if identifier in views else None
            return self.relation.create(schema=schema, identifier=identifier, type=kind)

        self._adapter.get_relation = get_relation


def renderer() -> Renderer:
    """A renderer with its own pretended answers, in a project that has the package installed.

    It finds no relations until `pretend_relations` names some.
    """
    adapter, manifest = _parsed_project()
    made = Renderer(copy(adapter), manifest)
    made.pretend_relations()
    return made


@cache
def _parsed_project() -> tuple[Any, Any]:
    """The adapter and the manifest of a project with nothing else; dbt parses for seconds."""
    files = {
        "packages.yml": {"packages": [{"local": str(ROOT)}]},
        "profiles.yml": PROFILE,
        "dbt_project.yml": {
            "name": NAME,
            "version": "1.0.0",
            "profile": NAME,
            "flags": {"send_anonymous_usage_stats": False},
        },
    }
    with TemporaryDirectory() as folder:
        path = Path(folder)
        install_package(path)
        for name, content in files.items():
            (path / name).write_text(json.dumps(content))
        places = {
            "--project-dir": path,
            "--profiles-dir": path,
            "--log-path": path / "logs",
            "--target-path": path / "target",
        }
        options = [str(part) for option in places.items() for part in option]
        done = dbtRunner().invoke(["parse", "--quiet", *options])
    assert done.success, done.exception
    return FACTORY.adapters["spark"], done.result
