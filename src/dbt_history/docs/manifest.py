"""dbt's manifest and catalog of a project, as the site needs them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from dbt_history.explore.tables import history_nodes, is_history

PACKAGE = "dbt_history"
Node = Mapping[str, Any]


class SiteError(click.ClickException):
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

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["project_name"])

    @cached_property
    def macros(self) -> list[Node]:
        """The macros of the project and of this package, generic tests among them."""
        return [
            macro
            for macro in self.manifest["macros"].values()
            if macro["package_name"] in (PACKAGE, self.name)
        ]

    @cached_property
    def histories(self) -> list[Node]:
        """The models and snapshots that make history tables, by name."""
        return history_nodes(self.nodes)

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """The nodes that read a node."""
        found: dict[str, list[str]] = {name: [] for name in self.nodes}
        for name in self.nodes:
            for parent in self.parents(name):
                found[parent].append(name)
        return found

    def parents(self, unique_id: str) -> list[str]:
        """The nodes that a node reads."""
        names = self.nodes[unique_id].get("depends_on", {}).get("nodes", [])
        return [name for name in dict.fromkeys(names) if name in self.nodes]

    def tests_of(self, unique_id: str) -> list[Node]:
        """The tests of a node, by name."""
        found = [
            test
            for test in self.tests
            if unique_id
            in (test.get("attached_node"), *test.get("depends_on", {}).get("nodes", []))
        ]
        return sorted(found, key=lambda test: str(test["name"]))

    @cached_property
    def tests(self) -> list[Node]:
        found = [
            node for node in self.manifest["nodes"].values() if node["resource_type"] == "test"
        ]
        return found + list(self.manifest["unit_tests"].values())

    @cached_property
    def layers(self) -> dict[str, str]:
        """The layer of each node: raw → history → as_of; a question is an exposure."""
        found: dict[str, str] = {}
        pending = list(self.nodes)
        while pending:
            name = pending[-1]
            open_parents = [one for one in self.parents(name) if one not in found]
            if open_parents and name not in found:
                pending += open_parents
                continue
            pending.pop()
            node = self.nodes[name]
            is_below = any(found[one] in ("history", "as_of") for one in self.parents(name))
            found[name] = "as_of" if is_below else "raw"
            if node["resource_type"] == "exposure":
                found[name] = "question"
            elif node["resource_type"] in ("model", "snapshot") and is_history(node):
                found[name] = "history"
        return found

    def layer(self, unique_id: str) -> str:
        return self.layers[unique_id]

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
