"""Runs dbt in this process: the materialization `history_batch` on one model, and migrations."""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dbt_history.extras import not_installed
from dbt_history.landing.errors import LandingError, RefusedError
from dbt_history.landing.table import LandingTable, quoted

NAME = "dbt_history_serve"
# One model for all tables: batch ids contain the model's name, so a renamed table keeps them.
MODEL = "written_table"
PACKAGE_MESSAGE = re.compile(r"dbt_history\.\w+: ")

PROJECT = {
    "name": NAME,
    "version": "1.0.0",
    "profile": NAME,
    "flags": {"send_anonymous_usage_stats": False},
}
PROFILE = {
    NAME: {
        "target": "session",
        "outputs": {
            "session": {
                "type": "spark",
                "method": "session",
                "host": "unused",
                "schema": "default",
                "threads": 1,
                "server_side_parameters": {
                    "spark.sql.session.timeZone": "UTC",
                    "spark.sql.variable.substitute": "false",
                },
            }
        },
    }
}
SCHEMA_MACRO = """
{% macro generate_schema_name(custom_schema_name, node) %}
    {%- do return(custom_schema_name or target.schema) -%}
{% endmacro %}
"""


class EngineError(LandingError):
    """dbt or Spark failed for a reason other than the request."""


def find_package(start: Path) -> Path:
    """The dbt package: installed in the project at `start`, the project itself, or this checkout.

    Raises RefusedError if none of them has it.
    """
    checkout = Path(__file__).resolve().parents[3]
    for folder in (start / "dbt_packages/dbt_history", start, checkout):
        project = folder / "dbt_project.yml"
        if project.is_file() and re.search(r"^name: dbt_history$", project.read_text(), re.M):
            return folder.resolve()
    raise RefusedError(
        f"the dbt package dbt_history is not installed in {start}: run dbt deps there,"
        " or name a project that has it (--project-dir)"
    )


def yaml_text(arguments: Mapping[str, Any]) -> str:
    """Arguments as YAML in one line of ASCII.

    JSON would write a character beyond U+FFFF as two escapes, which YAML refuses.
    """
    text = json.dumps(arguments, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", text)


def jinja_literal(value: object) -> str:
    """A value as a Jinja literal; all characters other than letters and digits are escaped."""
    if isinstance(value, str):
        safe = re.sub(r"[^A-Za-z0-9_ ]", lambda found: f"\\U{ord(found[0]):08x}", value)
        return f'"{safe}"'
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{jinja_literal(k)}: {jinja_literal(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(jinja_literal, value)) + "]"
    return "none" if value is None else repr(value)


class Engine:
    """A dbt project in a temporary folder; `close` removes it.

    Runs are serialized, because dbt has one state per process, and a commit takes its record from
    the settings of dbt's session.

    `max_deleted_share` is the setting of `history_batch`; None disables the check.
    """

    def __init__(self, package: Path, max_deleted_share: float | None = 0.5) -> None:
        if find_spec("dbt") is None:
            raise RefusedError(not_installed("dbt", "serve"))
        self.max_deleted_share = max_deleted_share
        self.running = threading.Lock()
        self.folder = tempfile.TemporaryDirectory(prefix="dbt_history_serve_")
        self.path = Path(self.folder.name)
        for folder in ("models", "macros", "dbt_packages/dbt_history"):
            (self.path / folder).mkdir(parents=True)
        # Not the examples: dbt would read them again in every run.
        for name in ("dbt_project.yml", "macros"):
            (self.path / "dbt_packages/dbt_history" / name).symlink_to(package / name)
        files = {
            "packages.yml": {"packages": [{"local": str(package)}]},
            "dbt_project.yml": PROJECT,
            "profiles.yml": PROFILE,
        }
        for name, content in files.items():
            (self.path / name).write_text(json.dumps(content))
        (self.path / "macros/generate_schema_name.sql").write_text(SCHEMA_MACRO)

    def close(self) -> None:
        self.folder.cleanup()

    def merge(self, schema: str, table: str, landing: LandingTable, key: Iterable[str]) -> str:
        """Apply the landed batches that are pending; returns the result as text.

        Raises RefusedError with the materialization's message, or EngineError.
        """
        config = {
            "materialized": "history_batch",
            "schema": schema,
            "alias": table,
            "unique_key": list(key),
            "meta": {
                "history": {
                    "convention": "fivetran",
                    "max_deleted_share": self.max_deleted_share,
                },
            },
        }
        settings = ", ".join(f"{name}={jinja_literal(value)}" for name, value in config.items())
        model = (
            f"{{{{ config({settings}) }}}}\n\n"
            f"select * from {quoted(landing.schema)}.{quoted(landing.name)}\n"
            "where `_batch` > {{ dbt_history.last_batch() }}\n"
        )
        with self.running:
            (self.path / "models" / f"{MODEL}.sql").write_text(model)
            return self.dbt("run", "--select", MODEL)

    def run_operation(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Run one of the package's migrations. Raises RefusedError or EngineError."""
        with self.running:
            self.dbt("run-operation", f"dbt_history.{name}", "--args", yaml_text(arguments))

    def dbt(self, *arguments: str) -> str:
        # Here because the import takes a second.
        from dbt.cli.exceptions import DbtUsageException
        from dbt.cli.main import dbtRunner

        events: list[str] = []

        def keep(event: Any) -> None:
            if event.info.level in ("warn", "error"):
                events.append(event.info.msg)

        options = {
            "--project-dir": self.path,
            "--profiles-dir": self.path,
            "--target-path": self.path / "target",
            "--log-path": self.path / "logs",
            "--log-level": "none",
            "--log-level-file": "none",
        }
        listed = [str(part) for option in options.items() for part in option]
        # The manifest is needed by nobody, and writing it takes half of dbt's own time.
        done = dbtRunner(callbacks=[keep]).invoke([*arguments, "--no-write-json", *listed])
        messages = [str(result.message) for result in getattr(done.result, "results", None) or []]
        if done.success:
            return "; ".join(messages)
        if isinstance(done.exception, DbtUsageException):
            # dbt's message contains the arguments, which may be data.
            raise EngineError("dbt refused the arguments of its command")
        text = "\n".join([*messages, *events, str(done.exception or "")]).strip()
        if own := PACKAGE_MESSAGE.search(text):
            raise RefusedError(without_call_stack(text[own.start() :]))
        raise EngineError(text.splitlines()[0] if text else "dbt failed")


def without_call_stack(message: str) -> str:
    """The package's message without the call stack that dbt adds."""
    return re.split(r"\n\s*(?:> in |> called by |Compilation Error)", message)[0].strip()
