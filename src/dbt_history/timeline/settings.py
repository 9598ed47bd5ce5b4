"""What dbt knows about a table: its key and convention, from the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_history.timeline.convention import Convention, from_settings


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


def settings_of(manifest: Mapping[str, Any], table: str) -> Settings:
    """Key and convention of the model or snapshot that makes the table."""
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] not in ("model", "snapshot") or not is_called(node, table):
            continue
        config = node["config"]
        key = config.get("unique_key") or ()
        key = (key,) if isinstance(key, str) else tuple(key)
        history = (config.get("meta") or {}).get("history")
        is_versions = config.get("materialized") == "history_batch" or (
            isinstance(history, dict) and history
        )
        chosen = (
            from_settings(history if isinstance(history, dict) else {}) if is_versions else None
        )
        return Settings(key, chosen)
    return Settings()


def full_name(manifest: Mapping[str, Any], table: str) -> str:
    """A table as Spark finds it: a model may be named without its schema."""
    if "." in table:
        return table
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] in ("model", "snapshot", "seed") and is_called(node, table):
            return f"{node['schema']}.{table}"
    return table
