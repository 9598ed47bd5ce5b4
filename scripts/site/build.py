"""The site of this checkout: `make docs`.

`dbt-history docs` with the guides of this package in its order, the pictures of the examples, and
an audit. It is written to .state/site.
"""

from __future__ import annotations

import os
import sys
from html import escape
from pathlib import Path

from dbt_history.docs.command import site_files
from dbt_history.docs.manifest import Project
from dbt_history.docs.markdown import relative
from dbt_history.docs.pages import Content, Page, Site, write
from dbt_history.output import asset
from dbt_history.session import start_session
from dbt_history.timeline.chart import base_name
from dbt_history.timeline.page import vega_bundle
from scripts.site import audit
from scripts.site.pictures import Picture, pictures

ROOT = Path(__file__).parents[2]
SECTIONS = {
    "Guides": "docs/guides/*.md",
    "Systems": "docs/systems/*.md",
    "How it works": "docs/flow/*.md",
    "More": "docs/*.md",
}
ORDER = ["start", "history", "analysts", "engineers", "batches", "how_it_works", "comparison"]
PROJECT = ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
AUDIT, DECISIONS = "audit.md", "docs/decisions/index.md"


def found(pattern: str) -> list[str]:
    """The files of a section; guides in reading order."""
    paths = [str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)]

    def place(path: str) -> tuple[int, str]:
        stem = Path(path).stem
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), path)

    return sorted(paths, key=place)


def title(path: str) -> str:
    """The first heading of a file."""
    return (ROOT / path).read_text("utf-8").partition("\n")[0].lstrip("# ")


def content(project: Project, drawn: list[Picture]) -> Content:
    """The pages of this checkout."""
    decisions = found("docs/decisions/*.md")
    rows = [f"- [{title(one)}]({Path(one).name})" for one in decisions]
    index = "# Decisions\n\nDesign decisions with their reasons and costs.\n\n" + "\n".join(rows)
    return Content(
        name="dbt_history",
        root=ROOT,
        cache=ROOT / ".state" / "flow",
        sections={
            **{title: found(pattern) for title, pattern in SECTIONS.items()},
            "Project": [AUDIT, DECISIONS, *PROJECT],
        },
        unlisted=["README.md", *decisions],
        texts={AUDIT: audit.markdown(project), DECISIONS: index},
        pages={
            f"timelines/{one.name}.html": ("Pictures", picture_page(one, project)) for one in drawn
        },
        assets={"vega.js": vega_bundle(), "timeline.js": asset("timeline", "timeline.js")},
        folders={"docs/decisions": "decisions/index.html"},
        proofs=True,
    )


def picture_page(picture: Picture, project: Project) -> Page:
    path = f"timelines/{picture.name}.html"
    names = {base_name(track.table) for track in picture.tracks}
    known = Site(project, Content("", ROOT, ROOT, {}), {}, {}).named
    links = ", ".join(
        f'<a class="name" href="{relative(known[name], path)}"><code>{name}</code></a>'
        for name in sorted(names)
        if name in known
    )
    html = f"<h1>{escape(picture.title)}</h1>\n<p>Tables: {links}</p>\n{picture.html}"
    return Page(picture.title, html, ("vega.js", "timeline.js"))


def main() -> None:
    drawn: list[Picture] = []
    problems: list[str] = []

    def of_checkout(project: Project) -> Content:
        # After the tables were read: one session for both.
        found, missing = pictures(project, start_session("dbt_history docs"))
        drawn.extend(found)
        problems.extend(missing)
        return content(project, drawn)

    target = sys.argv[1] if len(sys.argv) > 1 else None
    results = Path(os.environ.get("DBT_TARGET_PATH", "target"))
    made = site_files(of_checkout, ROOT, None, target, results)
    site = ROOT / ".state" / "site"
    write(site, made)
    for problem in problems:
        print(f"docs: not drawn: {problem}")
    print(f"{sum(path.endswith('.html') for path in made)} pages: open {site / 'index.html'}")


if __name__ == "__main__":
    main()
