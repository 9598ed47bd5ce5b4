"""The README: its length, queries and figures; the API in docs: no public macro is missing."""

from __future__ import annotations

import re

import yaml  # type: ignore[import-untyped]

from tests.support.markdown import page, table_after
from tests.support.project import ROOT

FOLDERS = (
    *("_core", "capture", "read", "versions", "logs", "features"),
    *("maintain", "migrate", "generic_tests"),
)
INDEX = page("docs/api.md")
README = page("README.md")
FIGURE = re.compile(r"\d+\.\d+")
# The last cells of the questions: a reader each.
QUESTIONS = re.findall(r"^\| .*\| `(\{\{ dbt_history\..*\}\})` \|$", README, re.MULTILINE)


def public_names() -> set[str]:
    return {
        file.stem
        for folder in FOLDERS
        for file in (ROOT / "macros" / folder).glob("*.sql")
        if not file.stem.startswith("_")
    }


def test_the_api_names_every_public_macro() -> None:
    named = set(re.findall(r"`(\w+)", INDEX))

    assert public_names() - named == set()


def test_the_api_names_no_removed_macro() -> None:
    rows = [line for line in INDEX.splitlines() if line.startswith("|")]
    mentioned = {name for row in rows for name in re.findall(r"`(\w+)(?:\([^`]*\))?`", row)}
    defined = {
        name
        for file in (ROOT / "macros").rglob("*.sql")
        for name in re.findall(r"{%-?\s*(?:macro|test|materialization)\s+(\w+)", file.read_text())
    }

    assert {name for name in mentioned - defined if not name.startswith("_")} == set()


def test_the_readme_is_read_in_one_go() -> None:
    assert len(README.splitlines()) < 120
    assert len(QUESTIONS) == 5


def test_the_questions_call_readers_with_arguments_that_they_have() -> None:
    described = {
        macro["name"]: [argument["name"] for argument in macro.get("arguments") or []]
        for macro in yaml.safe_load(page("macros/read/_macros.yml"))["macros"]
    }
    for query in QUESTIONS:
        name = re.findall(r"dbt_history\.(\w+)\(", query)[0]
        assert set(re.findall(r"(\w+)=", query)) <= set(described[name]), query


def test_every_figure_of_the_readme_is_on_the_page_that_its_row_names() -> None:
    costs = README.split("## What it costs", 1)[1].split("## ", 1)[0]
    rows = [line.split("|") for line in costs.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 5
    for _, _, ours, others, ratios, link, _ in rows:
        (path,) = re.findall(r"\]\(([^)]+)\)", link)
        (own,), compared = (FIGURE.findall(cell) for cell in (ours, others))
        assert compared
        measured = set(FIGURE.findall(page(path)))
        assert {own, *compared} <= measured, link
        # The figures of a row are from the same rounds, which its ratio shows.
        wanted = [f"{float(own) / float(other):.2f}" for other in compared]
        assert FIGURE.findall(ratios) == wanted or not ratios.strip(), ratios


AIM = re.compile(r"\b(aim|target|goal)s?\b", re.IGNORECASE)


def missed_aims() -> dict[str, list[list[str]]]:
    """The figures of each aim that was missed, the aim last, by the name of the page."""
    merges = table_after(page("docs/measured.md"), "## Targets")
    fixed = table_after(page("docs/measured_fixed_cost.md"), "| aim |")
    landing = re.findall(
        r"The aim is ([\d.]+) of [^;]*; the measured ratio is (\d+\.\d+)",
        page("docs/measured_landing.md"),
    )
    past = page("docs/measured_time_travel.md")
    (most,) = re.findall(r"Target: at most ([\d.]+) of the filter by hand", past)
    reads = [row["as_of / filter by hand"] for row in table_after(past, "## The state at")]
    return {
        "measured": [
            [FIGURE.findall(row["result"])[0], FIGURE.findall(row["target"])[-1]]
            for row in merges
            if row[""] == "missed"
        ],
        "measured_fixed_cost": [
            [
                *FIGURE.findall(row["measured"]),
                re.findall(r"(?:at most|aim) ([\d.]+)", row["aim"])[0],
            ]
            for row in fixed
            if "missed" in row[""]
        ],
        "measured_landing": [[found, aim] for aim, found in landing if float(found) < float(aim)],
        "measured_time_travel": [[read, most] for read in reads if float(read) > float(most)],
    }


# Their aims are met.
MET = {"measured_explorer", "measured_mirrors"}


def test_the_readme_names_every_aim_that_was_missed() -> None:
    told = " ".join(README.split("Aims that were missed", 1)[1].split("\n\n", 1)[0].split())
    missed = missed_aims()
    with_aims = {
        file.stem for file in ROOT.glob("docs/measured*.md") if AIM.search(file.read_text())
    }
    assert with_aims == missed.keys() | MET
    assert all(missed.values())
    for *figures, aim in (each for aims in missed.values() for each in aims):
        words = [*(rf"\b{re.escape(figure)}\b" for figure in figures), rf"\(aim {re.escape(aim)}\b"]
        assert re.search("[^();]*".join(words), told), (figures, aim)
    on_pages = "".join(page(f"docs/{name}.md") for name in missed)
    assert set(FIGURE.findall(told)) <= set(FIGURE.findall(on_pages))


def test_every_link_of_the_readme_leads_to_a_file_and_a_title_to_a_test_in_it() -> None:
    links = re.findall(r'\]\(([^)#" ]+)[^)" ]*(?: "(\w+)")?\)', README)
    assert len(links) == README.count("](")
    files = {link: ROOT / link for link, _ in links if "://" not in link}
    assert [link for link, file in files.items() if not file.exists()] == []
    tests = [(link, name) for link, name in links if name]
    assert len(tests) >= 5
    assert [name for link, name in tests if f"def {name}(" not in files[link].read_text()] == []
