"""The name, key and convention of a table, from the nodes of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_history.conventions import Convention, from_settings, history_settings
from dbt_history.explore.tables import Node, find_node, hidden_columns, table_name
from dbt_history.sql import quoted, quoted_table


@dataclass(frozen=True)
class Settings:
    """Settings of one table; `name` is the table in SQL, all others may be unknown.

    hidden   columns that must not be shown, in lower case
    """

    name: str
    key: tuple[str, ...] = ()
    convention: Convention | None = None
    hidden: frozenset[str] = frozenset()


def settings_of(nodes: Mapping[str, Node], table: str) -> Settings:
    """The settings of a node's name, or of `schema.table`, which may be in no project."""
    node = find_node(nodes, table)
    return Settings(quoted_table(table)) if node is None else settings_of_node(nodes, node)


def settings_of_node(nodes: Mapping[str, Node], node: Node) -> Settings:
    config = node.get("config") or {}
    history = history_settings(node)
    key = history.get("key") or config.get("unique_key") or ()
    materialized = config.get("materialized")
    if materialized == "history" and not history.get("start"):
        history = {"convention": "validity", **history}
    has_convention = bool({"convention", "start"} & history.keys())
    is_versions = materialized in ("history", "history_batch") or has_convention
    return Settings(
        f"{quoted(str(node['schema']))}.{quoted(table_name(node))}",
        (key,) if isinstance(key, str) else tuple(key),
        from_settings(history) if is_versions else None,
        hidden_columns(nodes, node),
    )
