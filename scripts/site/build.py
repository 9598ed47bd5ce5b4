"""Build the static site: `python -m scripts.site.build`, after `dbt build` and `dbt docs generate`.

.state/site/index.html   the README, with links to all pages
            dbt.html     dbt's own docs, one file
            audit.html   counts of descriptions and tests
            guides/ systems/ flow/ decisions/ timelines/
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from dbt_history.session import start_session
from dbt_history.timeline.page import asset, vega_bundle
from scripts.site import audit
from scripts.site.dbt_docs import address, dbt_page, overview
from scripts.site.manifest import Project, SiteError
from scripts.site.markdown import Rendered, Renderer, output_path, relative
from scripts.site.pictures import Picture, pictures

ROOT = Path(__file__).parents[2]
SECTIONS = {
    "Guides": "docs/guides/*.md",
    "Systems": "docs/systems/*.md",
    "How it works": "docs/flow/*.md",
    "More": "docs/*.md",
}
ORDER = ["history", "analysts", "engineers", "batches", "how_it_works", "comparison"]
PROJECT = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]


@dataclass(frozen=True)
class Site:
    """Pages and drawings by their path in the site; the navigation: sections of (title, path)."""

    pages: dict[str, Rendered]
    drawings: dict[str, str]
    menu: dict[str, list[tuple[str, str]]]


def found(pattern: str) -> list[str]:
    """The files of a section; guides in reading order."""
    paths = [str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)]

    def place(path: str) -> tuple[int, str]:
        stem = Path(path).stem
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), path)

    return sorted(paths, key=place)


def names(project: Project) -> dict[str, str]:
    """Addresses in dbt's docs by the name of a model, seed, snapshot or public macro."""
    macros = {
        macro["name"]: address(macro)
        for macro in project.macros
        if not macro["name"].startswith(("_", "default__", "test_", "materialization_"))
    }
    nodes = {
        node["name"]: address(node)
        for node in project.nodes.values()
        if node["resource_type"] in ("model", "seed", "snapshot")
    }
    return {**macros, **nodes}


def site_of(project: Project, drawn: list[Picture]) -> Site:
    """Render all Markdown pages, and list the other files."""
    sections = {title: found(pattern) for title, pattern in SECTIONS.items()}
    decisions = found("docs/decisions/*.md")
    sources = {"README.md", *PROJECT, *decisions}.union(*sections.values())
    render = Renderer(sources, names(project))
    pages = {
        output_path(source): render(source, (ROOT / source).read_text("utf-8"))
        for source in sorted(sources)
    }
    pages["audit.html"] = render("audit.md", audit.markdown(project))
    rows = [f"- [{pages[output_path(one)].title}]({Path(one).name})" for one in decisions]
    index = "# Decisions\n\nDesign decisions with their reasons and costs.\n\n" + "\n".join(rows)
    pages["decisions/index.html"] = render("docs/decisions/index.md", index)
    menu = {"": [("Overview", "index.html"), ("Models, tests, lineage (dbt)", "dbt.html")]}
    for title, paths in sections.items():
        entries = [(pages[output_path(one)].title, output_path(one)) for one in paths]
        menu[title] = entries
    menu["Pictures"] = [(one.title, f"timelines/{one.name}.html") for one in drawn]
    menu["Project"] = [
        ("Audit", "audit.html"),
        ("Decisions", "decisions/index.html"),
        *((pages[output_path(one)].title, output_path(one)) for one in PROJECT),
    ]
    return Site(
        pages, render.drawings, {title: entries for title, entries in menu.items() if entries}
    )


def navigation(site: Site, page: str) -> Iterator[str]:
    for title, entries in site.menu.items():
        if title:
            yield f"<h2>{escape(title)}</h2>"
        yield "<ul>"
        for words, path in entries:
            here = ' aria-current="page"' if path == page else ""
            yield f'<li><a href="{relative(path, page)}"{here}>{escape(words)}</a></li>'
        yield "</ul>"


def whole(site: Site, path: str, title: str, html: str, end: str = "") -> str:
    """A complete HTML page."""
    style = relative("assets/site.css", path)
    menu = "\n".join(navigation(site, path))
    home = relative("index.html", path)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)} · dbt_history</title><link rel="icon" href="data:,">\n'
        f'<link rel="stylesheet" href="{style}"></head>\n<body>\n'
        f'<nav aria-label="Pages"><details id="menu"><summary><span>dbt_history</span> pages'
        f'</summary>{menu}</details><a class="brand" href="{home}">dbt_history</a>'
        f'<div class="menu">{menu}</div></nav>\n<main>\n{html}\n</main>\n{end}</body></html>\n'
    )


def contents(rendered: Rendered) -> str:
    """Links to the sections of a long page."""
    if len(rendered.sections) < 4:
        return ""
    links = "".join(
        f'<li><a href="#{anchor}">{escape(words)}</a></li>' for anchor, words in rendered.sections
    )
    return f'<details class="contents"><summary>On this page</summary><ul>{links}</ul></details>'


def picture_page(site: Site, picture: Picture, project: Project) -> str:
    path = f"timelines/{picture.name}.html"
    tables = {track.table.rpartition(".")[2] for track in picture.tracks}
    known = names(project)
    links = ", ".join(
        f'<a class="name" href="{relative(known[name], path)}"><code>{name}</code></a>'
        for name in sorted(tables)
        if name in known
    )
    html = f"<h1>{escape(picture.title)}</h1>\n<p>Tables: {links}</p>\n{picture.html}"
    scripts = "".join(
        f'<script src="{relative(f"assets/{name}", path)}"></script>\n'
        for name in ("vega.js", "timeline.js")
    )
    return whole(site, path, picture.title, html, scripts)


def all_files(project: Project, drawn: list[Picture]) -> Mapping[str, str]:
    """The site: text by path."""
    site = site_of(project, drawn)
    made = {
        path: whole(site, path, page.title, contents(page) + page.html)
        for path, page in site.pages.items()
    }
    made.update(site.drawings)
    for picture in drawn:
        made[f"timelines/{picture.name}.html"] = picture_page(site, picture, project)
    guides = [entry for title, entries in site.menu.items() if title for entry in entries]
    made["dbt.html"] = dbt_page(project, overview([("Overview", "index.html"), *guides]))
    made["assets/vega.js"] = vega_bundle()
    made["assets/timeline.js"] = asset("timeline.js")
    look = (files("scripts.site") / "site.css").read_text("utf-8")
    made["assets/site.css"] = look + asset("timeline.css")
    return made


def write(target: Path, made: Mapping[str, str]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for path, text in made.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def main() -> None:
    target = Path(os.environ.get("DBT_TARGET_PATH", "target"))
    try:
        project = Project.read(target)
        drawn, problems = pictures(project, start_session("dbt_history docs"))
        made = all_files(project, drawn)
    except SiteError as error:
        sys.exit(f"docs: {error}")
    site = ROOT / ".state" / "site"
    write(site, made)
    for problem in problems:
        print(f"docs: not drawn: {problem}")
    print(f"{sum(path.endswith('.html') for path in made)} pages: open {site / 'index.html'}")


if __name__ == "__main__":
    main()
