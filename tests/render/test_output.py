"""What the commands write, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_history.generate import read_files, write_files
from dbt_history.output import OutputError, aligned, write_file


def test_a_file_is_replaced_as_a_whole_and_its_folder_is_made(tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    write_file(page, "old")
    with pytest.raises(UnicodeEncodeError):
        write_file(page, "new \ud800")
    assert page.read_text() == "old"
    write_file(page, "new")
    assert page.read_text() == "new"
    assert list(page.parent.iterdir()) == [page]


def test_the_columns_of_a_table_are_aligned() -> None:
    rows = [["name", "rows", "note"], ["a", "7", ""], ["long name", "12", "x"]]
    assert list(aligned(rows)) == [
        "name       rows  note", "a          7", "long name  12    x",
    ]  # fmt: skip
    assert list(aligned(rows, numbers=True)) == [
        "name       rows  note", "a             7", "long name    12     x",
    ]  # fmt: skip
    assert list(aligned([])) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "page.html")
    write_file(link, "new")
    assert (link.is_symlink(), (tmp_path / "page.html").read_text()) == (True, "new")


def test_a_file_that_cannot_be_written_is_an_error_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        write_file(tmp_path / "file" / "page.html", "text")


def test_a_generated_model_may_be_in_a_folder_with_a_space(tmp_path: Path) -> None:
    printed = "-- file: my models/a.sql\nselect 1\n-- end of file\n"
    assert write_files(tmp_path, read_files(printed)) == ["my models/a.sql"]
    assert (tmp_path / "my models" / "a.sql").read_text() == "select 1\n"
