"""dbt's manifest and catalog of the project, as the site needs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

PACKAGE = "dbt_history"
HISTORIES = ("history", "history_batch", "history_append", "incremental", "snapshot")
Node = Mapping[str, Any]


class SiteError(Exception):
    """dbt's artifacts are missing, or a page is incomplete."""


@dataclass(frozen=True)
class Project:
    """The manifest and the catalog that `dbt docs generate` writes to `target`."""

    manifest: dict[str, Any]
    catalog: dict[str, Any]
    template: str

    @classmethod
    def read(cls, target: Path) -> Project:
        try:
            manifest, catalog, template = (
                (target / name).read_text("utf-8")
                for name in ("manifest.json", "catalog.json", "index.html")
            )
        except FileNotFoundError as error:
            raise SiteError(f"{error.filename} is missing: run dbt docs generate") from None
        return cls(json.loads(manifest), json.loads(catalog), template)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The nodes of the lineage: models, seeds, snapshots, sources, exposures."""
        everything = {
            **self.manifest["nodes"],
            **self.manifest["sources"],
            **self.manifest["exposures"],
        }
        return {name: node for name, node in everything.items() if node["resource_type"] != "test"}

    @cached_property
    def macros(self) -> list[Node]:
        """The package's own macros, generic tests among them."""
        return [
            macro for macro in self.manifest["macros"].values() if macro["package_name"] == PACKAGE
        ]

    @cached_property
    def tests(self) -> list[Node]:
        found = [
            node for node in self.manifest["nodes"].values() if node["resource_type"] == "test"
        ]
        return found + list(self.manifest["unit_tests"].values())

    def layer(self, unique_id: str) -> str:
        """The layer of a node: raw → history → as_of."""
        node = self.nodes[unique_id]
        if node["resource_type"] == "exposure":
            return "question"
        if node.get("config", {}).get("materialized") in HISTORIES:
            return "history"
        return "as_of" if any(self._is_below_history(unique_id)) else "raw"

    def _is_below_history(self, unique_id: str) -> Iterator[bool]:
        for parent in self.nodes[unique_id].get("depends_on", {}).get("nodes", []):
            if parent in self.nodes:
                yield self.layer(parent) in ("history", "as_of")

    def system(self, node: Node) -> str | None:
        """The example that a node belongs to, by its folder; None outside the examples."""
        parts = Path(node["original_file_path"]).parts
        place = parts.index("examples") + 1 if "examples" in parts else len(parts)
        if place < len(parts) - 1:
            return parts[place]
        return str(node["name"]).partition("_")[0] if place < len(parts) else None

    @cached_property
    def systems(self) -> list[str]:
        found = {
            self.system(node) for node in self.nodes.values() if node["resource_type"] == "model"
        }
        return sorted(name for name in found if name)
