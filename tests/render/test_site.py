"""The site of `make docs`: built from the parsed project, checked, and opened in a browser."""

from __future__ import annotations

import copy
import hashlib
import json
import posixpath
import re
import subprocess
from pathlib import Path
from urllib.parse import quote, unquote
from xml.etree import ElementTree

import pytest
from dbt.cli.main import dbtRunner
from dbt.task.docs import DOCS_INDEX_FILE_PATH

from dbt_history.docs import flow
from dbt_history.docs.dbt_docs import COLOURS, styled
from dbt_history.docs.manifest import Project
from dbt_history.docs.markdown import Renderer
from dbt_history.docs.pages import MARK, Content, Site, write
from dbt_history.docs.tables import Facts, grouped, last_results
from dbt_history.embedded import as_json
from scripts.site import audit
from scripts.site.build import content
from scripts.site.pictures import Picture
from tests.render.test_timeline import picture
from tests.support.browser import BROWSER, OPTIONS, needs_browser
from tests.support.markdown import blocks
from tests.support.pages import Page, leaves_the_file
from tests.support.project import ROOT
from tests.support.selection import IS_ALL
from tests.support.waiting import TIMEOUT


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


def facts(project: Project) -> dict[str, Facts]:
    """One table that was read; the others are not built."""
    known = Facts(
        kind="version table", key=("id",), convention="fivetran",
        period="from `_fivetran_start` to `_fivetran_end`", versions=3, current=1,
        first="2024-01-01", last="2024-03-01", horizon="2023-01-01",
        tags=(("audit & co", "2024-02-01", "year <end>"),),
        per_day=(("2024-01-01", 2), ("2024-03-01", 1)),
    )  # fmt: skip
    return {
        node["unique_id"]: known if node["name"] == "fivetran_history" else Facts("not built")
        for node in project.histories
    }


def states(project: Project) -> dict[str, str]:
    """The results of a run in which the first test of fivetran_history failed."""
    tests = project.tests_of("model.dbt_history.fivetran_history")
    return {test["unique_id"]: "passed" if place else "failed" for place, test in enumerate(tests)}


@pytest.fixture(scope="module")
def site(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site. Drawing its flow charts takes a minute; only `make test-all` does so."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    with pytest.MonkeyPatch.context() as patch:
        if not IS_ALL:
            patch.setattr(
                flow, "drawing", lambda chart, _: '<svg xmlns="http://www.w3.org/2000/svg"/>'
            )
        made = content(project, [Picture("things", "time", (picture(),))])
        write(folder, Site(project, made, facts(project), states(project)).all_files())
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
    tests = {test["unique_id"] for test in project.tests}
    known = {*project.nodes, *project.manifest["macros"], *tests}
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


@pytest.mark.parametrize(
    "address", ["{out}/Secret.PNG", "../out/Secret.PNG", "l.png", "profiles.yml"]
)
def test_only_images_of_the_project_are_copied_into_the_site(tmp_path: Path, address: str) -> None:
    root, out = tmp_path / "shop", tmp_path / "out"
    for folder in (root, out):
        folder.mkdir()
    for file in (root / "Own.PNG", root / "profiles.yml", out / "Secret.PNG"):
        file.write_bytes(b"image")
    (root / "l.png").symlink_to(out / "Secret.PNG")
    render = Renderer(root, {"README.md": "index.html"}, {}, tmp_path)
    made = render("README.md", f"![own](Own.PNG) ![words]({address.format(out=out)})")

    assert render.drawings == {"own.png": b"image"}
    assert [one["src"] for one in Page(made.html).all("img")] == ["own.png"]
    assert "words" in made.html


def test_an_address_with_marks_of_its_own_finds_the_image(tmp_path: Path) -> None:
    name = "50% of #1?.png"
    (tmp_path / name).write_bytes(b"image")
    render = Renderer(tmp_path, {"README.md": "index.html"}, {}, tmp_path)
    made = render("README.md", f"![own](<{quote(name)}>)")

    assert render.drawings == {name: b"image"}
    assert [one["src"] for one in Page(made.html).all("img")] == [quote(name)]


def test_charts_of_two_texts_on_one_page_have_anchors_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "drawing", lambda *_: "drawn")
    render = Renderer(tmp_path, {"a.yml": "exposures.html"}, {}, tmp_path)
    chart = "```mermaid\nflowchart TD\n  a[Start] --> b[End]\n```"
    made = [Page(render("a.yml", chart).html) for _ in range(2)]

    anchors = [anchor for page in made for anchor in page.ids]
    assert len(anchors) == len(set(anchors)) == 4


def site_with_images(project: Project, root: Path) -> Site:
    """A guide with an image that has the name of a picture of the site; an image in the guide and
    in the description of a table, beside others that must not be copied."""
    out = root.with_name("out")
    files = {
        root / "docs/guide.md": b"![same](tables/fivetran_history.svg) ![own](../assets/Own.PNG)",
        root / "docs/tables/fivetran_history.svg": b"of the guide",
        root / "assets/Own.PNG": b"own",
        root / "profiles.yml": b"password",
        out / "Secret.PNG": b"secret",
    }
    for file, data in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    addresses = ["../out/Secret.PNG", f"{out}/Secret.PNG", "profiles.yml", "/assets/Own.PNG"]
    images = [f"![words]({address})" for address in ["assets/Own.PNG", *addresses]]
    own = copy.deepcopy(project.manifest)
    node = own["nodes"]["model.dbt_history.fivetran_history"]
    node["description"] = " ".join([*images, "[more](docs/guide.md)"])
    made = Content("shop", root, root, {"Guides": ["docs/guide.md"]})
    return Site(Project(own, project.catalog, project.template), made, {}, {})


def test_images_of_descriptions_are_copied_by_the_rules_of_guides(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "drawing", lambda *_: "drawn")
    made = site_with_images(project, tmp_path / "shop").all_files()
    page = Page(str(made["tables/fivetran_history.html"]))

    sources = [one["src"] for one in page.all("img")]
    assert sources == ["../assets/own.png", "fivetran_history.svg"]
    assert made["assets/own.png"] == b"own"
    assert not {b"password", b"secret"} & set(made.values())
    assert " ".join(page.text).count("words") == 4
    assert "../guide.html" in page.links


def test_an_image_and_the_lineage_of_a_table_have_names_of_their_own(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow, "drawing", lambda *_: "drawn")
    made = site_with_images(project, tmp_path / "shop").all_files()

    sources = [one["src"] for one in Page(str(made["guide.html"])).all("img")]
    assert sources == ["tables/fivetran_history-2.svg", "assets/own.png"]
    assert made["tables/fivetran_history-2.svg"] == b"of the guide"
    assert made["tables/fivetran_history.svg"] == "drawn"


def test_an_interrupted_site_can_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    made: dict[str, str | bytes] = {"index.html": "old", "tables/a.html": "a", MARK: "old"}
    write(folder, made)
    with pytest.raises(UnicodeEncodeError):
        write(folder, {"index.html": "\ud800", "tables/b.html": "b", MARK: "new"})
    assert (folder / MARK).read_text() == "new"
    write(folder, {"b.html": "b", MARK: "newest"})
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == [
        MARK, "b.html",
    ]  # fmt: skip


def test_no_text_ends_a_script_element_or_begins_a_comment_in_it() -> None:
    text = "<!--<script></script>"

    assert "<" not in as_json({"description": text})
    assert json.loads(as_json({"description": text})) == {"description": text}


def test_each_page_has_a_name_of_its_own_and_links_follow(project: Project, tmp_path: Path) -> None:
    own = copy.deepcopy(project.manifest)
    own["nodes"]["model.dbt_history.fivetran_history"]["name"] = "index"
    files = ["docs/dbt.md", "docs/exposures.md", "docs/index.md", "docs/Index.md"]
    files += ["docs/tables/index.md"]
    for file in ("README.md", *files):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"# {file}\n\n[i](docs/index.md) [home](../README.md)\n")
    made = Content("shop", tmp_path, tmp_path, {"Guides": files}, unlisted=["README.md"])
    site = Site(Project(own, project.catalog, project.template), made, {}, {})
    pages = [*site.markdown, *site.others, "dbt.html"]

    assert len({path.lower() for path in pages}) == len(pages)
    assert site.markdown["index.html"].title == "README.md"
    assert site.tables["model.dbt_history.fivetran_history"] == "tables/index-2.html"
    place = site.places["docs/index.md"]
    assert 'href="index.html"' in site.markdown[place].html
    assert f'href="{place}"' in site.markdown["index.html"].html
    assert ("docs/index.md", place) in site.menu["Guides"]


def test_a_guide_may_have_any_name(project: Project, tmp_path: Path) -> None:
    file = 'docs/a "b" #1?.md'
    for name, text in ((file, "# b"), ("README.md", "# s\n\n[b](docs/a%20%22b%22%20%231%3F.md)")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    made = Content("shop", tmp_path, tmp_path, {"Guides": [file]}, unlisted=["README.md"])
    site = Site(Project(project.manifest, project.catalog, project.template), made, {}, {})

    place = site.places[file]
    assert place == "a__b___1_.html"
    assert f'href="{place}"' in site.markdown["index.html"].html


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


def test_the_page_of_a_table_has_its_facts_tests_lineage_and_columns(
    site: Path, pages: dict[str, Page], project: Project
) -> None:
    path = "tables/fivetran_history.html"
    words, links = " ".join(pages[path].text), pages[path].links
    tests = project.tests_of("model.dbt_history.fivetran_history")

    for fact in (
        "One row per record and period", "3, 1 of them open", "2024-03-01", "audit & co",
        "year <end>", "2023-01-01: earlier versions were cleaned", "fivetran",
    ):  # fmt: skip
        assert fact in words, fact
    assert len(tests) > 3
    for test in tests:
        assert f"../dbt.html#!/{test['resource_type']}/{test['unique_id']}" in links
    shown = [str(one["class"]) for one in pages[path].all("span") if "state" in str(one["class"])]
    assert shown == ["state failed"] + ["state passed"] * (len(tests) - 1)
    assert "#lineage-n0" in links, "the steps of the lineage"
    assert (site / "tables/fivetran_history.svg").is_file()
    assert "Not read: not built" in " ".join(pages["tables/atoti_sales.html"].text)
    listed = pages["tables/index.html"]
    assert {Path(link).name for link in listed.links} >= {
        f"{node['name']}.html" for node in project.histories
    }


def test_the_results_of_tests_are_those_of_the_last_run(tmp_path: Path) -> None:
    assert last_results(tmp_path) == {}
    results = [
        {"unique_id": "test.shop.a", "status": "pass"},
        {"unique_id": "test.shop.b", "status": "fail"},
        {"unique_id": "model.shop.m", "status": "success"},
    ]
    (tmp_path / "run_results.json").write_text(json.dumps({"results": results}))

    assert last_results(tmp_path) == {"test.shop.a": "passed", "test.shop.b": "failed"}


def test_implementations_of_macros_are_hidden_and_edges_are_light(
    project: Project, site: Path
) -> None:
    macros = styled(project, "front")["macros"].values()
    shown = {one["name"] for one in macros if one.get("docs", {}).get("show", True)}

    assert "as_of" in shown
    assert not [name for name in shown if name.startswith(("default__", "spark__", "_"))]
    assert '"line-color":"#027599"' in project.template, "dbt's own colour, which is replaced"
    assert '"line-color":"#027599"' not in (site / "dbt.html").read_text("utf-8")


def test_a_projects_own_colours_groups_and_front_page_stay(project: Project) -> None:
    name = "model.dbt_history.fivetran_as_of"
    own = copy.deepcopy(project.manifest)
    own["nodes"][name] |= {"docs": {"show": False, "node_color": "red"}, "group": "mine"}
    own["groups"] = {"group.shop.mine": {"name": "mine"}}
    own["docs"]["doc.shop.__overview__"] = {"block_contents": "our own"}
    made = styled(Project(own, project.catalog, project.template), "front")

    assert made["nodes"][name]["docs"] == {"show": False, "node_color": "red"}
    assert made["nodes"][name]["group"] == "mine"
    assert "group.shop.mine" in made["groups"]
    assert made["docs"]["doc.dbt.__overview__"]["block_contents"] != "front"


def test_the_bars_of_many_days_are_months_or_years() -> None:
    days = [(f"{2000 + number // 365}-{number % 12 + 1:02}-01", 1) for number in range(365 * 20)]

    assert grouped([("2024-01-01", 2), ("2024-01-02", 3)]) == (
        "day", [("2024-01-01", 2), ("2024-01-02", 3)],
    )  # fmt: skip
    unit, months = grouped([(f"{year}-{month:02}-{day:02}", 1)
                            for year in (2020, 2021) for month in range(1, 13)
                            for day in range(1, 29)])  # fmt: skip
    assert (unit, len(months), months[0]) == ("month", 24, ("2020-01", 28))
    assert grouped(days)[0] in ("day", "month")
    assert grouped([(f"{1000 + number}-01-01", 1) for number in range(500)])[0] == "year"


def test_the_library_of_the_search_is_the_published_file_with_its_licence(site: Path) -> None:
    """MiniSearch 7.2.0: dist/umd/index.js of the npm package minisearch."""
    stored = (ROOT / "src/dbt_history/docs/minisearch.js").read_bytes()
    assert hashlib.sha256(stored).hexdigest() == MINISEARCH
    used = (site / "assets/minisearch.js").read_text("utf-8")
    assert "Luca Ongaro" in used[:200]
    assert "Permission is hereby granted" in used[:400]


# -- in a browser ----------------------------------------------------------------------------------

MINISEARCH = "03c27931eb603af1d3358579e9885eafdb6a2f5fa9929557b3e77d7e99d06d03"
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


def opened(
    file: Path, place: str, folder: Path, options: tuple[str, ...] = ()
) -> tuple[Page, list[str], list[str]]:
    """A page after the browser has run it, its errors, and its network requests."""
    log = folder / "network.json"
    done = subprocess.run(
        [str(BROWSER), *OPTIONS, *options, f"--log-net-log={log}",
         f"--user-data-dir={folder / 'user'}", "--dump-dom", f"{file.as_uri()}{place}"],
        capture_output=True, text=True, check=True, timeout=TIMEOUT,
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


SEARCH = """<script>
addEventListener('load', async function () {
  function pause(ms) { return new Promise(function (go) { setTimeout(go, ms); }); }
  function press(key) { dispatchEvent(new KeyboardEvent('keydown', { key: key, cancelable: true })); }
  var field = document.getElementById('search'), list = document.getElementById('found'), seen = {};
  press('/'); seen.focus = document.activeElement === field;
  function find(text) { field.value = text; field.dispatchEvent(new Event('input')); return Array.from(list.querySelectorAll('a')).map(function (one) { return [one.querySelector('b').textContent, one.querySelector('i').textContent, one.getAttribute('href')]; }); }
  seen.macro = find('as_of').slice(0, 3);
  seen.table = find('fivetran_history')[0];
  seen.misspelt = find('retentoin horizon').length;
  seen.text = find('previously nobody').length;
  seen.column = find('_fivetran_synced').length;
  seen.test = find('no_gap_between_versions').some(function (one) { return one[1] === 'test'; });
  seen.nothing = [find('qqqqzzzz').length, document.getElementById('found-count').textContent, list.hidden];
  find('as_of'); press('ArrowDown'); seen.first = document.activeElement === list.querySelector('a');
  press('ArrowUp'); seen.up = document.activeElement === field;
  press('Escape'); seen.escape = [field.value, list.hidden];
  document.documentElement.dataset.seen = JSON.stringify(seen);
});
</script>"""  # noqa: E501 - a script


@needs_browser
def test_the_search_finds_pages_models_columns_tests_and_macros_by_keyboard(
    site: Path, tmp_path: Path
) -> None:
    page = site / "guides" / "searched.html"
    page.write_text(
        (site / "guides/history.html").read_text("utf-8").replace("</body>", f"{SEARCH}</body>")
    )
    shown, complaints, asked = opened(page, "", tmp_path)
    page.unlink()
    (root,) = shown.all("html")
    seen = json.loads(str(root["data-seen"]))

    assert (complaints, asked) == ([], [])
    assert ["as_of", "macro", "../dbt.html#!/macro/macro.dbt_history.as_of"] in seen["macro"]
    assert seen["table"] == ["fivetran_history", "page", "../tables/fivetran_history.html"]
    assert seen["misspelt"] > 0
    assert seen["column"] > 0
    assert seen["test"]
    assert seen["nothing"] == [0, "0 results", True]
    assert seen["focus"] and seen["first"] and seen["up"]  # noqa: PT018 - one walk
    assert seen["escape"] == ["", True]


WIDTHS = """<body><script>
addEventListener('load', async function () {
  var found = {};
  for (var name of %s) {
    var frame = document.createElement('iframe');
    frame.style.cssText = 'width: 390px; height: 800px; border: 0';
    await new Promise(function (go) { frame.onload = go; frame.src = name; document.body.appendChild(frame); });
    var page = frame.contentDocument;
    found[name] = [page.documentElement.scrollWidth, Array.from(page.querySelectorAll('main .wide')).filter(function (one) { return one.scrollWidth > one.clientWidth + 1; }).length];
    frame.remove();
  }
  document.documentElement.dataset.found = JSON.stringify(found);
});
</script></body>"""  # noqa: E501 - a script


@needs_browser
def test_pages_and_their_tables_are_as_wide_as_a_phone(
    site: Path, pages: dict[str, Page], tmp_path: Path
) -> None:
    # A sample by kind; pictures scroll in their own box.
    names = ["index.html", "guides/comparison.html", "tables/fivetran_history.html",
             "tables/index.html", "audit.html", "exposures.html", "flow/history_batch.html",
             "api.html", "commands.html"]  # fmt: skip
    frame = site / "frame.html"
    frame.write_text(WIDTHS % json.dumps(names))
    shown, complaints, _ = opened(frame, "", tmp_path, ("--allow-file-access-from-files",))
    frame.unlink()
    (root,) = shown.all("html")

    assert complaints == []
    widths = json.loads(str(root["data-found"]))
    assert list(widths) == names
    assert {name: found for name, found in widths.items() if found[0] > 390 or found[1]} == {}
    labels = [cell.get("data-label") for cell in pages["guides/comparison.html"].all("td")]
    assert set(labels) >= {"question", "dbt_history", "shown by"}


@needs_browser
@pytest.mark.parametrize("options", [(), ("--force-dark-mode",)], ids=["light", "dark"])
def test_the_site_is_legible_in_both_themes(
    site: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    script = """<script>addEventListener('load', function () {
        function light(text) { var parts = text.match(/[\\d.]+/g).slice(0, 3).map(function (one) { var part = one / 255;
            return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4); });
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; }
        var found = {};
        [['--ink', '--page'], ['--ink', '--wash'], ['--soft', '--page'], ['--soft', '--wash'], ['--accent', '--page'], ['--accent', '--code'],
         ['--accent', '--here'], ['--ink', '--code'], ['--good', '--page'], ['--bad', '--page'], ['--proof', '--page']].forEach(function (pair) {
            var probe = document.body.appendChild(document.createElement('i'));
            probe.style.color = 'var(' + pair[0] + ')'; probe.style.backgroundColor = 'var(' + pair[1] + ')';
            var style = getComputedStyle(probe), a = light(style.color), b = light(style.backgroundColor);
            found[pair.join(' on ')] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        });
        document.documentElement.dataset.found = JSON.stringify([found, matchMedia('(prefers-color-scheme: dark)').matches]);
    });</script></body>"""  # noqa: E501 - a script
    page = site / "probe.html"
    page.write_text((site / "index.html").read_text("utf-8").replace("</body>", script))
    shown, _, _ = opened(page, "", tmp_path, options)
    page.unlink()
    (root,) = shown.all("html")
    contrasts, is_dark = json.loads(str(root["data-found"]))

    assert is_dark == bool(options)
    assert {pair: ratio for pair, ratio in contrasts.items() if ratio < 4.5} == {}
