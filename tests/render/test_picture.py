"""The README's picture is the one that its script draws."""

from __future__ import annotations

from xml.etree import ElementTree

from scripts.picture import ARRIVALS, FILE, HISTORY, SNAPSHOT, draw


def test_the_picture_is_the_one_that_the_script_draws() -> None:
    assert FILE.read_text("utf-8") == draw(), "run: python scripts/picture.py"


def test_the_picture_has_a_bar_for_each_version_and_a_dot_for_each_row() -> None:
    root = ElementTree.fromstring(draw())
    name = "{http://www.w3.org/2000/svg}"
    bars = [one for one in root.iter(f"{name}rect") if one.get("class") == "bar"]
    assert len(bars) == len(SNAPSHOT) + len(HISTORY)
    assert len(list(root.iter(f"{name}circle"))) == len(ARRIVALS)
    assert "prefers-color-scheme:dark" in draw()
