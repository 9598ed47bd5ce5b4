"""A destination in the tests' session, its gRPC server, and requests for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dbt_history.landing.writer import RequestWriter
from dbt_history.serve.destination import Destination
from dbt_history.serve.engine import Engine, find_package
from dbt_history.serve.service import Service, start
from dbt_history.session import start_session
from tests.support.project import ROOT
from tests.support.writer import Client

NUMBERS = itertools.count(1)


class FolderWriter(RequestWriter):
    """Names its files by their full path, as a writer does."""

    def add(self, stage: str, name: str, data: bytes, key: bytes | None = None) -> Path:
        return super().add(stage, str(self.folder / name), data, key)

    def add_row(self, row: list[str]) -> Self:
        """Add a file with one complete row."""
        self.add_csv("upsert", "u.csv", list(self.columns), [row])
        return self


@dataclass
class Served:
    """A running destination; its requests have one schema."""

    destination: Destination
    port: int
    schema: str

    @property
    def client(self) -> Client:
        return Client.at(self.port)

    def request(self, table: str, columns: dict[str, Any], **how: Any) -> FolderWriter:
        """A request with its files in its own folder below the root."""
        folder = self.destination.root / f"{table}_{next(NUMBERS)}"
        folder.mkdir()
        return FolderWriter(folder, columns, schema=self.schema, table=table, **how)

    def rows(self, table: str, columns: str = "*", order: str = "id") -> list[tuple[Any, ...]]:
        found = self.destination.spark.sql(
            f"select {columns} from {self.schema}.{table} order by {order}"
        )
        return [tuple(row) for row in found.collect()]


@contextmanager
def served(root: Path, schema: str) -> Iterator[Served]:
    engine = Engine(find_package(ROOT))
    destination = Destination(start_session("tests"), root, engine)
    server, port = start(Service(destination), "127.0.0.1:0")
    yield Served(destination, port, schema)
    server.stop(None).wait()
    engine.close()
