"""The site of `make docs`: built from the parsed project, checked, and opened in a browser."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from dbt.cli.main import dbtRunner
from dbt.task.docs import DOCS_INDEX_FILE_PATH

from scripts.site import audit, flow
from scripts.site.build import all_files, write
from scripts.site.dbt_docs import COLOURS, styled
from scripts.site.manifest import Project
from scripts.site.pictures import Picture
from tests.render.test_timeline import picture
from tests.support.browser import BROWSER, OPTIONS, needs_browser
from tests.support.markdown import blocks
from tests.support.pages import Page, leaves_the_file
from tests.support.project import ROOT
from tests.support.selection import IS_ALL


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The parsed repository; nothing is built, so its catalog is empty."""
    target = tmp_path_factory.mktemp("parsed")
    places = {"--project-dir": ROOT, "--profiles-dir": ROOT, "--target-path": target}
    options = [str(part) for option in places.items() for part in option]
    done = dbtRunner().invoke(["--quiet", "parse", *options, "--log-path", str(target)])
    assert done.success, done.exception
    manifest = json.loads((target / "manifest.json").read_text("utf-8"))
    template = Path(DOCS_INDEX_FILE_PATH).read_text("utf-8")
    return Project(manifest, {"nodes": {}, "sources": {}}, template)


@pytest.fixture(scope="module")
def site(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. Drawing its flow charts takes a minute; only `make test-all` does so."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    with pytest.MonkeyPatch.context() as patch:
        if not IS_ALL:
            patch.setattr(
                flow, "drawing", lambda chart: '<svg xmlns="http://www.w3.org/2000/svg"/>'
            )
        write(folder, all_files(project, [Picture("things", "time", (picture(),))]))
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Every page except dbt's own, by path."""
    return {
        str(file.relative_to(site)): Page(file.read_text("utf-8"))
        for file in sorted(site.rglob("*.html"))
        if file.name != "dbt.html"
    }


def test_every_link_of_the_site_resolves_and_every_page_can_be_reached(
    site: Path, pages: dict[str, Page], project: Project
) -> None:
    wrong, reached = [], {"index.html", "dbt.html"}
    known = {*project.nodes, *project.manifest["macros"]}
    for path, page in pages.items():
        for link in page.links:
            if leaves_the_file(link):
                continue
            target, _, anchor = unquote(link).partition("#")
            file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target or path))
            file = path if not target else file
            reached.add(file)
            is_there = (site / file).is_file()
            if is_there and anchor:
                place = anchor.rpartition("/")[2]
                is_there = place in (known if file == "dbt.html" else pages[file].ids)
            if not is_there:
                wrong.append(f"{path}: {link}")
    assert wrong == []
    assert set(pages) - reached == set()


def test_no_page_of_the_site_loads_external_resources(site: Path, pages: dict[str, Page]) -> None:
    fetched = [
        (path, address)
        for path, page in pages.items()
        for address in page.fetched
        if not address.startswith("data:")
    ]

    assert [one for one in fetched if leaves_the_file(one[1])] == []
    for path, address in fetched:
        assert (site / posixpath.dirname(path) / address).resolve().is_file()
    assert "url(" not in (site / "assets/site.css").read_text("utf-8")


def test_each_page_has_one_title_and_unique_headings(
    pages: dict[str, Page],
) -> None:
    for path, page in pages.items():
        assert len(list(page.all("h1"))) == 1, path
        assert len(page.ids) == len(set(page.ids)), path


def test_lineage_colours_raw_history_and_as_of_models(project: Project) -> None:
    layers = {node["name"]: project.layer(name) for name, node in project.nodes.items()}
    manifest = styled(project, "front")
    nodes = manifest["nodes"]

    assert layers["fivetran_requests"] == layers["stg_fivetran__request_files"] == "raw"
    assert layers["fivetran_history"] == layers["fivetran_snapshot"] == "history"
    assert layers["fivetran_as_of"] == layers["fivetran_current"] == "as_of"
    assert layers["what_was_there_on_a_day"] == "question"
    history = nodes["model.dbt_history.fivetran_history"]
    assert history["docs"]["node_color"] == COLOURS["history"]
    assert history["group"] == "history"
    groups = manifest["groups"].values()
    assert {group["owner"]["name"] for group in groups} == {"dbt_history"}
    assert len({group["description"] for group in groups}) == len(groups)


def test_the_five_questions_are_exposures_and_each_system_answers_one(project: Project) -> None:
    exposures = project.manifest["exposures"].values()
    asked = {
        project.system(project.nodes[name])
        for one in exposures
        for name in one["depends_on"]["nodes"]
    }

    assert [one["label"][0] for one in exposures] == list("12345")
    assert {"fivetran", "atoti", "naksha"} <= asked


def test_a_flow_chart_is_parsed_into_steps_and_exits() -> None:
    chart = "flowchart TD\n    a([run]) --> b{right?<br/>all?}\n    b -- no --> c([refused])\n"
    chart += "    b -- yes --> d[merge] --> e[(table)]\n"

    assert flow.read(chart) == (
        {"a": "run", "b": "right? all?", "c": "refused", "d": "merge", "e": "table"},
        [("a", "", "b"), ("b", "no", "c"), ("b", "yes", "d"), ("d", "", "e")],
    )
    shown = Page(flow.html(chart, "f", "chart-1.svg"))
    assert shown.links == ["#f-c", "#f-d"]
    assert shown.ids == ["f-a", "f-b", "f-c", "f-d", "f-e"]
    assert [one["src"] for one in shown.all("img")] == ["chart-1.svg"]


def test_every_step_of_the_projects_flow_charts_is_parsed() -> None:
    for file in (ROOT / "docs/flow").glob("*.md"):
        for chart in blocks(file.read_text("utf-8"), "mermaid"):
            texts, ways = flow.read(chart)
            assert len(ways) == chart.count("-->"), file.name
            assert not [text for text in texts.values() if set(text) & set("[]{}")], file.name


def test_a_flow_chart_is_drawn_again_only_when_it_changes(tmp_path: Path) -> None:
    chart = "flowchart TD\n    a([run]) --> b{{right?<br/>all?}}\n    b -- no --> c([refused])\n"

    drawn = flow.drawing(chart, tmp_path)
    (made,) = tmp_path.iterdir()
    made.write_text("kept")

    assert flow.drawing(chart, tmp_path) == "kept"
    assert {"run", "right?", "refused", "no"} <= set(ElementTree.fromstring(drawn).itertext())
    assert flow.drawing(chart.replace("run", "go"), tmp_path) != drawn
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.thorough
def test_each_flow_chart_of_the_site_is_an_image_without_external_resources(site: Path) -> None:
    charts = sorted((site / "flow").glob("*.svg"))

    assert [one.name for one in charts] == [
        f"{file.stem}-{number}.svg"
        for file in sorted((ROOT / "docs/flow").glob("*.md"))
        for number, _ in enumerate(blocks(file.read_text("utf-8"), "mermaid"), 1)
    ]
    for chart in charts:
        text = chart.read_text("utf-8")
        assert "<script" not in text
        assert not re.search(r"@import|url\((?!#)|href=.(?!#)", text), chart.name


def test_the_audit_finds_no_missing_descriptions(project: Project) -> None:
    counts = {one.what: one for one in audit.described(project)}

    for what in ("public macros described", "arguments described", "arguments typed"):
        assert counts[what].all > 80
        assert counts[what].missing == ()
    assert counts["columns in yml described"].missing == ()
    assert sum(count for _, count in audit.tests_by_kind(project)) == len(project.tests)
    assert audit.length({"macro_sql": "{% macro m() %}\n{# why\n #}\n\nx\n{% endmacro %}"}) == 3


# -- in a browser ----------------------------------------------------------------------------------

DRAG = """<script>
addEventListener('load', function wait() {
  if (!document.documentElement.dataset.ready) { return setTimeout(wait, 50); }
  var svg = document.querySelector('#versions svg'), box = svg.getBoundingClientRect();
  var before = document.getElementById('as-of-text').textContent;
  svg.dispatchEvent(new PointerEvent('pointerdown', {
    bubbles: true, clientX: box.left + box.width * 0.3, clientY: box.top + 20
  }));
  setTimeout(function () {
    document.documentElement.dataset.before = before;
    document.documentElement.dataset.after = document.getElementById('as-of-text').textContent;
  }, 200);
});
</script>"""


def opened(file: Path, place: str, folder: Path) -> tuple[Page, list[str], list[str]]:
    """A page after the browser has run it, its errors, and its network requests."""
    log = folder / "network.json"
    done = subprocess.run(
        [str(BROWSER), *OPTIONS, f"--log-net-log={log}", f"--user-data-dir={folder / 'user'}",
         "--dump-dom", f"{file.as_uri()}{place}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    # dbt's page has icons whose address is a template until its script runs: {{ getIcon(…) }}.
    lines = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    complaints = [line for line in lines if "/%7B%7B%20" not in line]
    # The browser itself requests updates and the time; such requests have no page as initiator.
    requests = [event.get("params", {}) for event in json.loads(log.read_text("utf-8"))["events"]]
    asked = [
        one["url"]
        for one in requests
        if one.get("initiator", "not an origin") != "not an origin"
        and leaves_the_file(one["url"])
        and not one["url"].startswith("file:")
    ]
    return Page(done.stdout), complaints, asked


@needs_browser
def test_the_browser_reports_requests_and_errors(tmp_path: Path) -> None:
    page = tmp_path / "asks.html"
    page.write_text('<img src="http://example.invalid/x.png"><script>missing()</script>')

    _, complaints, asked = opened(page, "", tmp_path)

    assert set(asked) == {"http://example.invalid/x.png"}
    assert "missing is not defined" in " ".join(complaints)


@needs_browser
def test_the_site_opens_from_a_file_without_network_or_errors(site: Path, tmp_path: Path) -> None:
    moved = site / "timelines" / "moved.html"
    moved.write_text(
        (site / "timelines/things_by_time.html").read_text("utf-8").replace("</body>", DRAG)
    )
    lineage = "#!/model/model.dbt_history.fivetran_as_of?g_v=1&g_i=%2Bfivetran_as_of"
    seen = {}
    for file, place in ((site / "index.html", ""), (moved, ""), (site / "dbt.html", lineage)):
        seen[file.name], complaints, asked = opened(file, place, tmp_path)
        assert (complaints, asked) == ([], []), file.name
    moved.unlink()

    (root,) = seen["moved.html"].all("html")
    assert root["data-before"] != root["data-after"]
    assert list(seen["moved.html"].all("tr", class_="tl-in-force"))
    assert list(seen["dbt.html"].all("canvas")), "lineage is drawn"
    assert "fivetran_as_of" in " ".join(seen["dbt.html"].text)
