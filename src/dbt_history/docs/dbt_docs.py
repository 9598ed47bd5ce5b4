"""dbt's static docs, with the project's colours, groups and front page.

They are added to the site's copy, not to the project's yml (docs/decisions/0061). A project's own
colours, groups and front page stay.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from dbt_history.docs.manifest import Project, SiteError
from dbt_history.embedded import as_json

# The palette of Okabe and Ito; the layers also differ in lightness.
COLOURS = {"raw": "#7A8793", "history": "#0072B2", "as_of": "#009E73", "question": "#D55E00"}
GROUPS = {
    "raw": "Data as a source sent it: seeds, sources, staging.",
    "history": "Version tables and logs: every version of every record.",
    "as_of": "The state now, or on a day: read from the history.",
}
OVERVIEW = "doc.dbt.__overview__"
# dbt's graph has dark blue edges on a dark blue ground.
EDGES = {'"target-arrow-color":"#027599"': '"target-arrow-color":"#b9d7e6"',
         '"line-color":"#027599"': '"line-color":"#b9d7e6"',
         '"target-arrow-color":"#006f8a"': '"target-arrow-color":"#b9d7e6"',
         '"line-color":"#006f8a"': '"line-color":"#b9d7e6"'}  # fmt: skip


def group(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "resource_type": "group",
        "package_name": "dbt_history",
        "path": "",
        "original_file_path": "",
        "unique_id": f"group.dbt_history.{name}",
        "owner": {"name": "dbt_history", "email": None},
        "description": GROUPS[name],
        "config": {"meta": {}},
    }


def styled(project: Project, overview: str) -> dict[str, Any]:
    """The manifest with a colour and a group for each node, and the site's front page."""
    manifest = copy.deepcopy(project.manifest)
    for unique_id in project.nodes:
        layer = project.layer(unique_id)
        for kind in ("nodes", "sources", "exposures"):
            node = manifest[kind].get(unique_id)
            if node is None:
                continue
            own = node.get("docs") or {}
            look = {
                "show": own.get("show", True),
                "node_color": own.get("node_color") or COLOURS[layer],
            }
            node["docs"] = look
            node.setdefault("config", {})["docs"] = look
            if kind == "nodes" and not node.get("group"):
                node["group"] = node["config"]["group"] = layer
    manifest["groups"] |= {f"group.dbt_history.{name}": group(name) for name in GROUPS}
    for macro in manifest["macros"].values():
        if is_implementation(macro["name"]):
            macro["docs"] = {"show": False}
    if OVERVIEW not in manifest["docs"]:
        raise SiteError("dbt's docs have no front page that ours could replace")
    if not any(name.endswith(".__overview__") for name in manifest["docs"] if name != OVERVIEW):
        manifest["docs"][OVERVIEW]["block_contents"] = overview
    return manifest


def is_implementation(name: str) -> bool:
    """Whether a macro implements another one for an adapter: `default__as_of` of `as_of`."""
    return bool(re.match("[a-z]+__", name)) or name.startswith("_")


def overview(name: str, pages: list[tuple[str, str]]) -> str:
    """The front page of dbt's docs: a legend of the colours, and links to the guides."""
    names = {"raw": "grey", "history": "blue", "as_of": "green", "question": "vermilion"}
    layers = "\n".join(f"- **{name}** ({names[name]}): {text}" for name, text in GROUPS.items())
    links = "\n".join(f"- [{title}]({address})" for title, address in pages)
    return (
        f"# {name}: models, tests, macros\n\n"
        "Lineage runs from the raw data through the history to the models that read it:\n\n"
        f"{layers}\n"
        "- **question** (vermilion): an exposure: what the models are read for\n\n"
        "The button at the lower right of a model's page shows its lineage.\n\n"
        f"### Pages\n\n{links}\n"
    )


def dbt_page(project: Project, front: str) -> str:
    """dbt's page with both artifacts embedded, as `dbt docs generate --static` writes it."""
    page = project.template
    for colour, lighter in EDGES.items():
        page = page.replace(colour, lighter)
    for place, data in (
        ("MANIFEST.JSON INLINE DATA", styled(project, front)),
        ("CATALOG.JSON INLINE DATA", project.catalog),
    ):
        if page.count(f'"{place}"') != 1:
            raise SiteError(f"dbt's page has no single place for {place}")
        page = page.replace(f'"{place}"', as_json(data))
    return page


def address(node: dict[str, Any] | Any) -> str:
    """The address of a node or macro in dbt's docs."""
    return f"dbt.html#!/{node['resource_type']}/{node['unique_id']}"
