"""The history tables of a project: key, convention, and the columns that must not be shown."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from dbt_history.commit_log import recorded_key
from dbt_history.conventions import KNOWN, ConventionError, history_settings
from dbt_history.explore.project import DbtProject, ExploreError

HISTORIES = ("history", "history_batch", "history_append")
# The nodes that describe a relation; the first kind that has a name is taken.
DESCRIBING = ("model", "snapshot", "seed", "source")
PERSONAL_TAGS = {"personal", "pii"}
# The columns in which a kind of table names the user; other kinds take the first that they have.
USERS = {"mirror": ("mod_user",), "events": ("_hist_user",), "features": ("author",)}
ANY_USER = ("mod_user", "_hist_user", "author")
Node = Mapping[str, Any]


@dataclass(frozen=True)
class HistoryTable:
    """One table.

    reader    the convention as a reader's argument: a mapping for a log, None if the readers find
              it by the model
    call      how a model writes the relation: `ref('customers')`
    hidden    columns that are left out, in lower case
    """

    name: str
    schema: str
    relation: Any
    kind: str
    key: tuple[str, ...]
    reader: Mapping[str, Any] | str | None
    call: str
    columns: Mapping[str, str]
    hidden: frozenset[str] = frozenset()

    @property
    def user_column(self) -> str | None:
        """The column with the user who wrote a version; None without one that is shown."""
        left_out = self.hidden | {name.lower() for name in self.key}
        shown = {name.lower(): name for name in self.columns if name.lower() not in left_out}
        names = USERS.get(self.kind, ANY_USER)
        return next((shown[name] for name in names if name in shown), None)


def is_history(node: Node) -> bool:
    config = node.get("config") or {}
    return (
        config.get("materialized") in HISTORIES
        or node["resource_type"] == "snapshot"
        or config.get("incremental_strategy") == "history_batch"
    )


def history_nodes(nodes: Mapping[str, Node]) -> list[Node]:
    """The models and snapshots that make history tables, by name."""
    found = [
        node
        for node in nodes.values()
        if node["resource_type"] in ("model", "snapshot") and is_history(node)
    ]
    return sorted(found, key=lambda node: str(node["name"]))


def is_hidden(column: Mapping[str, Any]) -> bool:
    """Whether a column has `meta: {history: {hide: true}}` or a tag for personal data."""
    config = column.get("config") or {}
    for meta in (column.get("meta") or {}, config.get("meta") or {}):
        history = meta.get("history")
        if isinstance(history, Mapping) and history.get("hide") is True:
            return True
    tags = [*(column.get("tags") or []), *(config.get("tags") or [])]
    return any(str(tag).lower() in PERSONAL_TAGS for tag in tags)


def hidden_columns(nodes: Mapping[str, Node], node: Node | None) -> frozenset[str]:
    """Names of the columns that are hidden in the node or in one of its ancestors.

    A mirror or an event table has the columns of its main table, but seldom their descriptions. A
    mirror may store a column as `main_<name>` (decision 106). Other nodes that describe the same
    relation, such as a source, count too.
    """
    hidden: set[str] = set()
    pending, seen = [node] if node else [], set()
    while pending:
        one = pending.pop()
        if one["unique_id"] in seen:
            continue
        seen.add(one["unique_id"])
        columns = (one.get("columns") or {}).values()
        hidden |= {str(column["name"]).lower() for column in columns if is_hidden(column)}
        parents = (one.get("depends_on") or {}).get("nodes") or []
        pending += [nodes[name] for name in parents if name in nodes]
        pending += nodes_of_relation(nodes, one.get("schema"), table_name(one))
    is_log = is_log_model(node)
    return frozenset(hidden | {f"main_{name}" for name in hidden if is_log})


def hidden_values(values: Iterable[str | None]) -> dict[str | None, str]:
    """What is shown for each value of a hidden key column: a number, in random order."""
    distinct = list(set(values))
    random.SystemRandom().shuffle(distinct)
    return {value: f"hidden {number}" for number, value in enumerate(distinct, 1)}


def table_name(node: Node) -> str:
    """The name of a node's relation in its schema."""
    return str(node.get("alias") or node.get("identifier") or node["name"])


def nodes_of_relation(nodes: Mapping[str, Node], schema: str | None, table: str) -> list[Node]:
    """All nodes that describe the relation: a source may be the table of a model."""
    wanted = (str(schema).lower(), table.lower())
    return [
        node
        for node in nodes.values()
        if schema
        and node["resource_type"] in DESCRIBING
        and (str(node.get("schema")).lower(), table_name(node).lower()) == wanted
    ]


def model_name(node: Node) -> str:
    """The node's name; of a version of a model `<name>_v<version>`, as dbt names its table."""
    version = node.get("version")
    return str(node["name"]) if version is None else f"{node['name']}_v{version}"


def find_node(nodes: Mapping[str, Node], name: str) -> Node | None:
    """The model, snapshot, seed or source of this name, else of this alias, or `schema.table`.

    With a schema a table of this name precedes a node of this name. The name of a model with
    versions is its latest version, as in `ref`.
    """
    schema, _, table = (part.lower() for part in name.rpartition("."))
    found = []
    for node in nodes.values():
        if node["resource_type"] not in DESCRIBING:
            continue
        names = {model_name(node).lower()}
        if node.get("version") is None or node["version"] == node.get("latest_version"):
            names.add(str(node["name"]).lower())
        is_named = (table in names, table_name(node).lower() == table)
        if any(is_named) and schema in ("", str(node.get("schema")).lower()):
            is_source = node["resource_type"] == "source"
            is_first = is_named[1] if schema else is_named[0]
            order = (is_source, not is_first, DESCRIBING.index(node["resource_type"]))
            found.append((order, node))
    return min(found, key=lambda one: one[0], default=(None, None))[1]


def call_of(node: Node | None, schema: str, table: str) -> str:
    """How a model writes the relation."""
    if node is None:
        return f"api.Relation.create(schema='{schema}', identifier='{table}')"
    if node["resource_type"] == "source":
        return f"source('{node['source_name']}', '{node['name']}')"
    version = node.get("version")
    return f"ref('{node['name']}'{'' if version is None else f', v={version!r}'})"


def read_recorded_key(project: DbtProject, relation: Any) -> tuple[str, ...]:
    """The key that the newest commits of a log record; empty if none does."""
    try:
        entries = project.call("_history_entries", relation=relation, limit=40)
    except ExploreError:  # a view, or a table of another format
        return ()
    return recorded_key(entry["record"] for entry in entries)


def resolve(
    project: DbtProject,
    name: str,
    key: tuple[str, ...],
    show_hidden: bool,
    node: Node | None = None,
) -> HistoryTable:
    """The table of a node, else of a node's name or of `schema.table`. Raises ExploreError."""
    nodes = project.nodes
    node = node or find_node(nodes, name)
    schema, _, table = name.rpartition(".")
    if node is None and not schema:
        raise ExploreError(
            f"{name}: no model, snapshot, seed or source has this name"
            " (a table of another project: schema.table)"
        )
    schema = str(node["schema"]) if node else schema
    table = table_name(node) if node else table
    relation = project.relation(schema, table)
    # get_relation does not know the format, which decides how commits are read.
    relation = project.call("_with_format", relation=relation)
    columns = project.columns(relation)
    names = {column.lower() for column in columns}
    settings = project.call(
        "_table_settings", node=node, convention=None, key=list(key) or None, caller_name="explore"
    )
    reader: Mapping[str, Any] | str | None = None
    found = tuple(settings["key"])
    try:
        own = history_settings(node) if node else {}
    except ConventionError as error:
        raise ExploreError(str(error)) from None
    kind = kind_of_log(node, table, names)
    if kind:
        found = key or read_recorded_key(project, relation) or found
        reader = {"convention": "hx" if kind == "mirror" else "events", "key": list(found)}
    elif is_log_without_versions(node):
        raise ExploreError(f"{name} is a log without a key: nothing can be as of an instant")
    elif node is None or not (is_history(node) or {"convention", "start"} & own.keys()):
        kind, reader = "versions", detect(name, columns)
    else:
        kind = "features" if settings["convention"]["name"] == "naksha" else "versions"
    if not found:
        raise ExploreError(f"{name}: name its key with --key")
    absent = [column for column in found if column.lower() not in names]
    if absent:
        raise ExploreError(f"{name} has no column {', '.join(absent)}")
    require_instants(name, columns, kind, reader or settings["convention"])
    call = call_of(node, schema, table)
    hidden = frozenset() if show_hidden else hidden_columns(nodes, node)
    return HistoryTable(table, schema, relation, kind, found, reader, call, columns, hidden & names)


def kind_of_log(node: Node | None, table: str, names: Set[str]) -> str:
    """`mirror`, `events`, or nothing if the rows have periods, whatever their columns are named."""
    if node is not None and is_history(node) and not is_log_model(node):
        return ""
    # A mirror that no model makes is recognized by its id: other tables may have the two columns.
    if {"mod_time", "deleted"} <= names and (is_log_model(node) or f"{table.lower()}_id" in names):
        return "mirror"
    return "events" if {"_hist_event", "_hist_time"} <= names else ""


def require_instants(
    name: str, columns: Mapping[str, str], kind: str, convention: Mapping[str, Any] | str
) -> None:
    """Raise ExploreError if a time of the table is no instant: what it is depends on a zone."""
    types = {column.lower(): of for column, of in columns.items()}
    times: list[Any] = {"mirror": ["mod_time"], "events": ["_hist_time"]}.get(kind, [])
    if not times:
        said = {"convention": convention} if isinstance(convention, str) else convention
        known = KNOWN.get(str(said.get("convention")))
        times = [said.get(part) or getattr(known, part, None) for part in ("start", "end")]
    without_zone = [str(time) for time in times if types.get(str(time).lower()) == "timestamp_ntz"]
    if without_zone:
        raise ExploreError(
            f"{name}: {' and '.join(without_zone)} of type timestamp_ntz is no instant: read a view"
            " that has it as timestamp, such as to_utc_timestamp(<column>, 'Europe/Berlin')"
        )


def is_log_model(node: Node | None) -> bool:
    return ((node or {}).get("config") or {}).get("materialized") == "history_append"


def is_log_without_versions(node: Node | None) -> bool:
    """Whether the model is a log, and no append-only version table."""
    return node is not None and is_log_model(node) and not history_settings(node).get("append_only")


def detect(name: str, columns: Mapping[str, str]) -> str | dict[str, str]:
    """The convention of a table that no model of the project builds, by its columns."""
    types = {column.lower(): kind for column, kind in columns.items()}
    for known in KNOWN.values():
        if known.start in types and known.end in types:
            kind = types[known.start]
            if kind in ("bigint", "int", "date") and known.type == "timestamp":
                axis = "date" if kind == "date" else "bigint"
                return {"convention": known.name, "type": axis}
            return known.name
    raise ExploreError(f"{name} has no known period columns")
