"""The explorer's page as a person uses it: keys, a mouse, windows of any size, prints, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.render.test_explore import day, exported, html, version
from tests.support.browser import needs_browser, opened

pytestmark = needs_browser
RECORD = "&key=%7B%22table%22:%22s.customers%22,%22key%22:[%221%22]%7D"
PNG = b"\x89PNG\r\n\x1a\n"


def saved(html: str, folder: Path, place: str = "") -> str:
    """The address of the page in a file."""
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    return file.as_uri() + place


def focus(page: Any, element: str) -> None:
    """Press Tab until the element of this id, or the first with this class, has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(
            "name => document.activeElement.id === name"
            " || document.activeElement.classList.contains(name)",
            element,
        ):
            return
    raise AssertionError(f"Tab does not reach {element}")


def test_everything_is_done_with_keys_alone(tmp_path: Path) -> None:
    with opened(saved(html(), tmp_path)) as page:
        focus(page, "find")
        page.keyboard.type("city=Osl")
        focus(page, "at")
        page.keyboard.press("Control+A")
        page.keyboard.type("2024-01-06")
        page.keyboard.press("Enter")
        # Enter applies the date while the field keeps the focus.
        expect(page.locator("#status")).to_contain_text("as of 2024-01-06")
        focus(page, "slider")
        page.keyboard.press("Home")
        first = page.input_value("#at")
        page.keyboard.press("ArrowRight")
        assert page.input_value("#at") > first
        page.keyboard.press("End")
        focus(page, "key")
        page.keyboard.press("Enter")
        page.wait_for_selector("html[data-drawn]")
        assert page.text_content("#versions-title") == "Versions of 1"
        page.keyboard.press("Shift+Tab")
        focus(page, "close")
        page.keyboard.press("Space")
        assert not page.is_visible("#versions")
        assert page.evaluate("document.activeElement.id") == "find"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280, 2560])
def test_no_window_is_too_narrow_or_too_wide(tmp_path: Path, width: int, scheme: str) -> None:
    place = f"#at={day(4)}&than={day(2)}{RECORD}"
    tables = html(exported(), exported("contracts"))
    with opened(saved(tables, tmp_path, place), width, 900, scheme) as page:
        page.wait_for_selector("html[data-drawn]")
        assert page.evaluate("innerWidth") == width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert back == ("rgb(20, 24, 29)" if scheme == "dark" else "rgb(255, 255, 255)")


def test_the_line_follows_the_mouse(tmp_path: Path) -> None:
    place = f"#at={day(9)}{RECORD}"
    with opened(saved(html(), tmp_path, place)) as page:
        page.wait_for_selector("html[data-drawn]")
        box = page.locator("#version-chart svg").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=4)
        page.mouse.up()
        assert page.input_value("#at") < "2024-01-09"


def test_pictures_and_rows_are_saved(tmp_path: Path) -> None:
    place = f"#at={day(4)}{RECORD}"
    with opened(saved(html(), tmp_path, place)) as page:
        page.wait_for_selector("html[data-drawn]")

        def saved_by(button: str) -> tuple[str, bytes]:
            with page.expect_download() as download:
                page.click(button)
            return download.value.suggested_filename, Path(download.value.path()).read_bytes()

        for button, name in (("#version-png", "versions.png"), ("#change-png", "changes.png")):
            found, content = saved_by(button)
            assert found == name
            assert content.startswith(PNG)
            assert len(content) > 2_000
        for button, name, head in (
            ("#version-csv", "versions.csv", b"record,from,"),
            ("#change-csv", "changes.csv", b"at,table,key,what,"),
            ("#rows .tools button", "customers.csv", b"id,city,n,from,"),
        ):
            found, content = saved_by(button)
            assert found == name
            assert content.startswith(head)


def test_a_print_has_the_first_rows_and_says_what_is_missing(tmp_path: Path) -> None:
    rows = [version(key, day(1), None, "x") for key in range(501)]
    with opened(saved(html(exported(rows=rows)), tmp_path)) as page:
        page.click("#print")
        printed = {name: (count, note) for name, count, note in page.evaluate("window.printed")}

    assert printed["Rows of customers"] == (500, "The first 500 of 501 rows; CSV has all.")
    assert printed["Changes"] == (500, "The first 500 of 501 rows; CSV has all.")


def test_a_comma_belongs_to_the_value_where_no_column_follows(tmp_path: Path) -> None:
    rows = [version(1, day(1), None, "Oslo, old"), version(2, day(1), None, "Oslo")]
    with opened(saved(html(exported(rows=rows)), tmp_path)) as page:
        page.fill("#find", "city=Oslo, old")
        expect(page.locator(".count")).to_have_text("1 row")
        page.fill("#find", "city=Oslo, id=2")
        expect(page.locator("#rows button.key")).to_have_text("2")


def test_lists_of_versions_and_changes_have_a_call_to_copy(tmp_path: Path) -> None:
    place = f"#at={day(4)}&than={day(2)}&user=bob{RECORD}"
    contracts = exported("contracts")
    contracts.marks = {"tags": [], "horizon": str(day(3)), "suspensions": []}
    with opened(saved(html(exported(), contracts), tmp_path, place)) as page:
        page.wait_for_selector("html[data-drawn]")
        versions, changes = page.text_content("#version-code"), page.text_content("#change-code")

    assert versions == (
        "select *\nfrom {{ dbt_history.between(ref('customers'), '2024-01-01 00:00:00',"
        " '2024-01-05 00:00:00.000001', 'validity') }}\nwhere `id` = 1"
        "\n\nselect *\nfrom {{ dbt_history.between(ref('contracts'), '2024-01-03 00:00:00',"
        " '2024-01-05 00:00:00.000001', 'validity') }}\nwhere `id` = 1"
    )
    assert changes == (
        "select *\nfrom {{ dbt_history.changeset(ref('customers'), '2024-01-02 00:00:00.000001',"
        " '2024-01-04 00:00:00.000001', 'validity', key=['id']) }}"
        "\n\nselect *\nfrom {{ dbt_history.changeset(ref('contracts'),"
        " '2024-01-03 00:00:00.000001',"
        " '2024-01-04 00:00:00.000001', 'validity', key=['id']) }}"
        "\n-- without the choice of a user or column"
    )


def test_the_user_of_a_deletion_is_known_where_the_log_has_it(tmp_path: Path) -> None:
    rows = [version(1, day(1), day(3), "Bonn", ended_by="eve"), version(2, day(1), day(3), "x")]
    with opened(saved(html(exported(rows=rows)), tmp_path)) as page:
        listed = page.evaluate(
            "Array.from(document.querySelectorAll('#change-rows .grid-row')).map(row =>"
            " [2, 3, 5].map(place => row.children[place].textContent))"
        )

    assert sorted(one for one in listed if one[1] == "delete") == [
        ["1", "delete", "eve"], ["2", "delete", "unknown"],
    ]  # fmt: skip
