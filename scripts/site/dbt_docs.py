"""dbt's static docs, with the project's colours, groups and front page.

They are added to the site's copy, not to the project's yml, so that projects that install the
package do not get them (docs/decisions/0061).
"""

from __future__ import annotations

import copy
import json
from typing import Any

from scripts.site.manifest import Project, SiteError

# The palette of Okabe and Ito; the layers also differ in lightness.
COLOURS = {"raw": "#7A8793", "history": "#0072B2", "as_of": "#009E73", "question": "#D55E00"}
GROUPS = {
    "raw": "Data as a source sent it: seeds, sources, staging.",
    "history": "Version tables and logs: every version of every record.",
    "as_of": "The state now, or on a day: read from the history.",
}
OVERVIEW = "doc.dbt.__overview__"


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
            look = {"show": True, "node_color": COLOURS[layer]}
            node["docs"] = look
            node.setdefault("config", {})["docs"] = look
            if kind == "nodes":
                node["group"] = node["config"]["group"] = layer
    manifest["groups"] = {f"group.dbt_history.{name}": group(name) for name in GROUPS}
    if OVERVIEW not in manifest["docs"]:
        raise SiteError("dbt's docs have no front page that ours could replace")
    manifest["docs"][OVERVIEW]["block_contents"] = overview
    return manifest


def overview(pages: list[tuple[str, str]]) -> str:
    """The front page of dbt's docs: a legend of the colours, and links to the guides."""
    names = {"raw": "grey", "history": "blue", "as_of": "green", "question": "vermilion"}
    layers = "\n".join(f"- **{name}** ({names[name]}): {text}" for name, text in GROUPS.items())
    links = "\n".join(f"- [{title}]({address})" for title, address in pages)
    return (
        "# dbt_history: models, tests, macros\n\n"
        "Lineage runs from the raw data through the history to the models that read it:\n\n"
        f"{layers}\n"
        "- **question** (vermilion): an exposure: one of the five questions for analysts\n\n"
        "The button at the lower right of a model's page shows its lineage.\n\n"
        f"### Guides\n\n{links}\n"
    )


def dbt_page(project: Project, front: str) -> str:
    """dbt's page with both artifacts embedded, as `dbt docs generate --static` writes it."""
    page = project.template
    for place, data in (
        ("MANIFEST.JSON INLINE DATA", styled(project, front)),
        ("CATALOG.JSON INLINE DATA", project.catalog),
    ):
        if page.count(f'"{place}"') != 1:
            raise SiteError(f"dbt's page has no single place for {place}")
        page = page.replace(f'"{place}"', json.dumps(data).replace("</", "<\\/"))
    return page


def address(node: dict[str, Any] | Any) -> str:
    """The address of a node or macro in dbt's docs."""
    return f"dbt.html#!/{node['resource_type']}/{node['unique_id']}"
