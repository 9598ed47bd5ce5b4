"""What dbt knows about a table: its key and convention, from the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_history.timeline.convention import Convention, from_settings
from dbt_history.timeline.errors import TimelineError


@dataclass(frozen=True)
class Settings:
    """Of one table; empty and None where dbt does not say."""

    key: tuple[str, ...] = ()
    convention: Convention | None = None


def read_manifest(target: Path) -> dict[str, Any]:
    """dbt's manifest; empty if dbt has left none."""
    try:
        manifest: dict[str, Any] = json.loads((target / "manifest.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return manifest


def is_called(node: Mapping[str, Any], table: str) -> bool:
    schema, _, name = table.rpartition(".")
    alias = node.get("alias") or node["name"]
    return alias == name and schema.rpartition(".")[2] in ("", node.get("schema"))


def said_of_history(node: Mapping[str, Any]) -> dict[str, Any]:
    """What a node says under `meta.history`; text is the name of a convention.

    Raises TimelineError for a list or a number.
    """
    said = (node["config"].get("meta") or {}).get("history")
    if isinstance(said, str) and said:
        return {"convention": said}
    if isinstance(said, dict):
        return said
    if said is None or isinstance(said, bool):
        return {}
    raise TimelineError(
        f"meta.history of {node['name']} is {said!r}: a convention's name, a mapping or true"
    )


def settings_of(manifest: Mapping[str, Any], table: str) -> Settings:
    """Key and convention of the model or snapshot that makes the table."""
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] not in ("model", "snapshot") or not is_called(node, table):
            continue
        config = node["config"]
        key = config.get("unique_key") or ()
        key = (key,) if isinstance(key, str) else tuple(key)
        history = said_of_history(node)
        is_versions = config.get("materialized") == "history_batch" or history
        return Settings(key, from_settings(history) if is_versions else None)
    return Settings()


def full_name(manifest: Mapping[str, Any], table: str) -> str:
    """A table as Spark finds it: a model may be named without its schema."""
    if "." in table:
        return table
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] in ("model", "snapshot", "seed") and is_called(node, table):
            return f"{node['schema']}.{table}"
    return table
