"""The key and convention of a table, from dbt's manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_history.conventions import Convention, from_settings, history_settings


@dataclass(frozen=True)
class Settings:
    """Settings of one table; empty and None if the manifest has none."""

    key: tuple[str, ...] = ()
    convention: Convention | None = None


def builds(node: Mapping[str, Any], table: str) -> bool:
    schema, _, name = table.rpartition(".")
    alias = node.get("alias") or node["name"]
    return alias == name and schema.rpartition(".")[2] in ("", node.get("schema"))


def settings_of(manifest: Mapping[str, Any], table: str) -> Settings:
    """Key and convention of the model or snapshot that builds the table."""
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] not in ("model", "snapshot") or not builds(node, table):
            continue
        config = node["config"]
        key = config.get("unique_key") or ()
        key = (key,) if isinstance(key, str) else tuple(key)
        history = history_settings(node)
        materialized = config.get("materialized")
        if materialized == "history" and not history.get("start"):
            history = {"convention": "validity", **history}
        is_versions = materialized in ("history", "history_batch") or history
        return Settings(key, from_settings(history) if is_versions else None)
    return Settings()


def full_name(manifest: Mapping[str, Any], table: str) -> str:
    """The table's name with its schema; a model may be given without."""
    if "." in table:
        return table
    for node in manifest.get("nodes", {}).values():
        if node["resource_type"] in ("model", "snapshot", "seed") and builds(node, table):
            return f"{node['schema']}.{table}"
    return table
