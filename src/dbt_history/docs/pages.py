"""The files of a site: pages with one navigation, search, dbt's documentation.

index.html       the README, or the list of history tables
tables/          one page per history table, and the list of all
exposures.html   what the models are read for
dbt.html         dbt's own documentation, one file
assets/          style, search
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape, unescape
from pathlib import Path
from typing import Any

from dbt_history.docs import flow, tables
from dbt_history.docs.dbt_docs import address, dbt_page, is_implementation, overview
from dbt_history.docs.manifest import Node, Project
from dbt_history.docs.markdown import Rendered, Renderer, free_path, output_paths, relative
from dbt_history.docs.tables import Facts
from dbt_history.output import asset

Menu = dict[str, list[tuple[str, str]]]
SCRIPTS = ("minisearch.js", "search-index.js", "search.js")
EXPOSURES = "exposures.html"
MAX_TEXT = 20_000
# A folder with this file is a site, which may be replaced.
MARK = "assets/search-index.js"
SEARCH = (
    '<div class="search" role="search"><input type="search" id="search" autocomplete="off"'
    ' placeholder="Search (press /)" aria-label="Search all pages, models, tests and macros">'
    '<ol id="found" hidden></ol><p id="found-count" role="status"></p></div>'
)


@dataclass(frozen=True)
class Page:
    """A page that is not Markdown: its title, its HTML, and scripts of assets/ at its end."""

    title: str
    html: str
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Content:
    """What a site consists of besides dbt's artifacts.

    sections   titles of the navigation, and the Markdown files of each, by path below `root`
    unlisted   Markdown files with a page but no entry in the navigation
    texts      Markdown that is no file, by a path that a file would have
    pages      other pages by path, with the section of the navigation
    """

    name: str
    root: Path
    cache: Path
    sections: Mapping[str, Sequence[str]]
    unlisted: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, tuple[str, Page]] = field(default_factory=dict)
    assets: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    proofs: bool = False


@dataclass(frozen=True)
class Site:
    project: Project
    content: Content
    facts: Mapping[str, Facts]
    states: Mapping[str, str]

    # -- addresses ---------------------------------------------------------------------------------

    @cached_property
    def tables(self) -> dict[str, str]:
        """The page of each history table by unique id."""
        names = [str(node["name"]) for node in self.project.histories]
        made: dict[str, str] = {}
        for node in self.project.histories:
            path = f"tables/{file_name(node, names)}.html"
            made[node["unique_id"]] = free_path(path, ["tables/index.html", *made.values()])
        return made

    @cached_property
    def places(self) -> dict[str, str]:
        """The page of each Markdown file, none of which has the name of another page."""
        content = self.content
        listed = {path for section in content.sections.values() for path in section}
        taken = ["dbt.html", EXPOSURES, "tables/index.html"]
        taken += [*content.pages, *self.tables.values()]
        return output_paths({*listed, *content.unlisted, *content.texts}, taken)

    @cached_property
    def lineages(self) -> dict[str, str]:
        """The chart of each history table whose lineage is drawn, by the path of the picture."""
        charts = {
            picture_of(path): tables.lineage(self.project, name)
            for name, path in self.tables.items()
        }
        return {path: chart for path, chart in charts.items() if chart}

    @cached_property
    def named(self) -> dict[str, str]:
        """Addresses by the name of a model, seed, snapshot or public macro."""
        macros = {
            macro["name"]: address(macro)
            for macro in self.project.macros
            if not is_implementation(macro["name"])
            and not macro["name"].startswith(("test_", "materialization_"))
        }
        nodes = {
            node["name"]: self.tables.get(node["unique_id"]) or address(node)
            for node in self.project.nodes.values()
            if node["resource_type"] in ("model", "seed", "snapshot")
        }
        return {**macros, **nodes}

    # -- pages -------------------------------------------------------------------------------------

    @cached_property
    def renderer(self) -> Renderer:
        """Renders files, and descriptions by the unique id of their node.

        As in dbt's documentation, a path in a description is relative to the project.
        """
        content = self.content
        described = {**self.tables, **{one["unique_id"]: EXPOSURES for one in self.exposures}}
        return Renderer(
            content.root, {**self.places, **described}, self.named, content.cache,
            content.folders, content.proofs, taken=self.lineages,
        )  # fmt: skip

    @cached_property
    def markdown(self) -> dict[str, Rendered]:
        """Rendered Markdown files by path in the site."""
        content = self.content
        made = {}
        for path, page in self.places.items():
            text = content.texts.get(path)
            if text is None:
                text = (content.root / path).read_text("utf-8")
            made[page] = self.renderer(path, text)
        return made

    @cached_property
    def others(self) -> dict[str, Page]:
        made = {path: page for path, (_, page) in self.content.pages.items()}
        for node in self.project.histories:
            path = self.tables[node["unique_id"]]
            made[path] = self.table_page(node, path)
        listed = tables.overview_table(self.project, self.facts, "tables/index.html", self.tables)
        made["tables/index.html"] = Page("History tables", f"<h1>History tables</h1>\n{listed}")
        if self.exposures:
            made[EXPOSURES] = Page("Exposures", self.exposures_html())
        if "index.html" not in self.markdown:
            listed = tables.overview_table(self.project, self.facts, "index.html", self.tables)
            title = self.content.name
            made["index.html"] = Page(title, f"<h1>{escape(title)}</h1>\n{listed}")
        return made

    @property
    def exposures(self) -> list[Node]:
        found = [one for one in self.project.nodes.values() if one["resource_type"] == "exposure"]
        return sorted(found, key=lambda one: str(one.get("label") or one["name"]))

    def text_of(self, node: Node) -> str:
        """The description of a node, rendered."""
        html = self.renderer(node["unique_id"], str(node.get("description") or "")).html
        # The page has its own first heading, and anchors of its own.
        return re.sub(r"<(/?)h[1-3]( id=\"[^\"]*\")?", r"<\1h3", html)

    def exposures_html(self) -> str:
        parts = ["<h1>Exposures</h1>"]
        for one in self.exposures:
            reads = [
                tables.link(self.project.nodes[name], EXPOSURES, self.tables)
                for name in self.project.parents(one["unique_id"])
            ]
            owner = one.get("owner") or {}
            url = str(one.get("url") or "")
            is_safe = url.startswith(("https://", "http://"))
            parts += [
                f'<h2 id="{escape(one["name"])}">{escape(tables.label_of(one))}</h2>',
                self.text_of(one),
                tables.fact_list(
                    [
                        ("Reads", ", ".join(reads)),
                        ("Type", escape(str(one.get("type") or ""))),
                        ("Owner", escape(str(owner.get("name") or owner.get("email") or ""))),
                        ("At", f'<a href="{escape(url)}">{escape(url)}</a>' if is_safe else ""),
                    ]
                ),
            ]
        return "\n".join(parts)

    def table_page(self, node: Node, path: str) -> Page:
        known, name = self.facts.get(node["unique_id"], Facts("not read")), str(node["name"])
        above, below, questions = tables.relatives(
            self.project, node["unique_id"], path, self.tables
        )
        tags = [
            f"<li>{tables.code(tag)}: {escape(at)}{f', {escape(why)}' if why else ''}</li>"
            for tag, at, why in known.tags
        ]
        relation = f"{node['schema']}.{node['alias'] or name}"
        rows = [
            ("Table", tables.code(relation)),
            ("Kind", escape(known.kind)),
            ("Key", ", ".join(map(tables.code, known.key))),
            ("Convention", tables.code(known.convention) if known.convention else ""),
            ("Period", tables.in_words(known.period)),
            ("Versions", f"{known.versions:,}, {known.current:,} of them open"
             if not known.problem else ""),
            ("First version", escape(known.first)),
            ("Last version", escape(known.last)),
            ("Horizon", escape(known.horizon) + ": earlier versions were cleaned"
             if known.horizon else ""),
            ("Suspended since", escape(known.suspended_since)),
            ("Tags", f"<ul>{''.join(tags)}</ul>" if tags else ""),
            ("Made from", above),
            ("Read by", below),
            ("Exposures", questions),
            ("In dbt's documentation", f'<a href="{escape(relative(address(node), path))}">'
             "columns, SQL, graph</a>"),
        ]  # fmt: skip
        parts = [f"<h1>{escape(name)}</h1>", self.text_of(node)]
        if known.problem:
            parts.append(f'<p class="problem">Not read: {escape(known.problem)}</p>')
        parts.append(tables.fact_list(rows))
        if known.per_day:
            parts += [
                '<h2 id="versions-a-day">Versions over time</h2>',
                tables.bar_chart(known.per_day),
            ]
        parts += [
            '<h2 id="tests">Tests</h2>',
            tables.test_list(self.project, node["unique_id"], path, self.states),
            tables.column_table(self.project, node, known),
        ]
        picture = picture_of(path)
        if chart := self.lineages.get(picture):
            parts += [
                '<h2 id="lineage">Lineage</h2>',
                flow.html(chart, "lineage", relative(picture, path)),
            ]
        return Page(name, "\n".join(parts))

    # -- the frame ---------------------------------------------------------------------------------

    @cached_property
    def menu(self) -> Menu:
        pages = self.markdown
        first = [("Overview", "index.html"), ("Models, tests, lineage (dbt)", "dbt.html")]
        found: Menu = {"": first}
        listed = [("All tables", "tables/index.html")]
        listed += [
            (str(node["name"]), self.tables[node["unique_id"]]) for node in self.project.histories
        ]
        if self.exposures:
            listed.append(("Exposures", EXPOSURES))
        sections = {
            title: [(pages[self.places[one]].title, self.places[one]) for one in paths]
            for title, paths in self.content.sections.items()
        }
        for path, (title, page) in self.content.pages.items():
            sections.setdefault(title, []).append((page.title, path))
        found["History tables"] = listed
        return {title: entries for title, entries in {**found, **sections}.items() if entries}

    def navigation(self, page: str) -> Iterator[str]:
        for title, entries in self.menu.items():
            if title:
                yield f"<h2>{escape(title)}</h2>"
            yield "<ul>"
            for words, path in entries:
                here = ' aria-current="page"' if path == page else ""
                yield f'<li><a href="{relative(path, page)}"{here}>{escape(words)}</a></li>'
            yield "</ul>"

    def whole(self, path: str, page: Page, before: str = "") -> str:
        """A complete HTML page."""
        menu = "\n".join(self.navigation(path))
        name = escape(self.content.name)
        scripts = "".join(
            f'<script src="{relative(f"assets/{one}", path)}" defer></script>\n'
            for one in (*page.scripts, *SCRIPTS)
        )
        return (
            f'<!doctype html>\n<html lang="en" data-root="{relative("index.html", path)[:-10]}">\n'
            f'<head><meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<title>{escape(page.title)} · {name}</title><link rel="icon" href="data:,">\n'
            f'<link rel="stylesheet" href="{relative("assets/site.css", path)}">\n'
            f"{scripts}</head>\n"
            f'<body>\n<nav aria-label="Pages">'
            f'<a class="brand" href="{relative("index.html", path)}">{name}</a>'
            f"{SEARCH}"
            f'<details id="menu"><summary>Pages</summary>{menu}</details>'
            f'<div class="menu">{menu}</div></nav>\n<main>\n{before}{page.html}\n</main>\n'
            f"</body></html>\n"
        )

    # -- search ------------------------------------------------------------------------------------

    def entries(self) -> Iterator[dict[str, str]]:
        """What can be found: `t` title, `k` kind, `u` address from the root, `x` text."""
        for path, rendered in sorted(self.markdown.items()):
            yield {"t": rendered.title, "k": "page", "u": path, "x": plain(rendered.html)}
        for path, page in sorted(self.others.items()):
            yield {"t": page.title, "k": "page", "u": path, "x": plain(page.html)}
        for unique_id, node in sorted(self.project.nodes.items()):
            if unique_id in self.tables or node["resource_type"] == "exposure":
                continue
            columns = " ".join(
                f"{name} {column.get('description') or ''}"
                for name, column in (node.get("columns") or {}).items()
            )
            text = f"{node.get('description') or ''} {columns}"
            yield entry(node, str(node["resource_type"]), text)
        for macro in self.project.macros:
            if not is_implementation(macro["name"]):
                yield entry(macro, "macro", str(macro.get("description") or ""))
        for test in self.project.tests:
            column = test.get("column_name") or ""
            yield entry(test, "test", f"{column} {test.get('description') or ''}")

    # -- all files ---------------------------------------------------------------------------------

    def all_files(self) -> dict[str, str | bytes]:
        made: dict[str, str | bytes] = {}
        for path, rendered in self.markdown.items():
            made[path] = self.whole(path, Page(rendered.title, rendered.html), contents(rendered))
        for path, page in self.others.items():
            made[path] = self.whole(path, page)
        # Complete only now: descriptions are rendered for the other pages.
        made |= self.renderer.drawings
        for path, chart in self.lineages.items():
            made[path] = flow.drawing(chart, self.content.cache)
        links = [entry for title, entries in self.menu.items() if title for entry in entries]
        front = overview(self.content.name, [("Overview", "index.html"), *links])
        made["dbt.html"] = dbt_page(self.project, front)
        made["assets/site.css"] = asset("docs", "site.css") + asset("timeline", "timeline.css")
        index = json.dumps(list(self.entries()), ensure_ascii=False, separators=(",", ":"))
        made[MARK] = f"window.siteIndex = {index};\n"
        made["assets/search.js"] = asset("docs", "search.js")
        made["assets/minisearch.js"] = (
            f"/* MiniSearch\n{asset('docs', 'minisearch.LICENSE')}*/\n"
            + asset("docs", "minisearch.js").partition("//# sourceMappingURL")[0]
        )
        return {**made, **{f"assets/{name}": text for name, text in self.content.assets.items()}}


def file_name(node: Node, names: Sequence[str]) -> str:
    """The model's name; with its package where two packages have a model of this name."""
    name = str(node["name"])
    full = name if names.count(name) == 1 else f"{node['package_name']}.{name}"
    return re.sub(r"[^\w.-]", "_", full)


def picture_of(path: str) -> str:
    """The path of the picture of a page's lineage."""
    return path.removesuffix(".html") + ".svg"


def entry(node: Mapping[str, Any], kind: str, text: str) -> dict[str, str]:
    return {"t": str(node["name"]), "k": kind, "u": address(node), "x": " ".join(text.split())}


def plain(html: str) -> str:
    """The words of a page, without its drawings."""
    text = re.sub(r"<svg.*?</svg>|<script.*?</script>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())[:MAX_TEXT]


def contents(rendered: Rendered) -> str:
    """Links to the sections of a long page."""
    if len(rendered.sections) < 4:
        return ""
    links = "".join(
        f'<li><a href="#{anchor}">{escape(words)}</a></li>' for anchor, words in rendered.sections
    )
    return f'<details class="contents"><summary>On this page</summary><ul>{links}</ul></details>'


def write(target: Path, made: Mapping[str, str | bytes]) -> None:
    """Replace the folder by the files; after an interruption it is still known as a site."""
    mark = target / MARK
    for file in sorted(target.rglob("*"), reverse=True):
        if file.is_dir() and not file.is_symlink():
            if file != mark.parent:
                file.rmdir()
        elif file != mark:
            file.unlink()
    for path in sorted(made, key=lambda one: one != MARK):
        file, data = target / path, made[path]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
