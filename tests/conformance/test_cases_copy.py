"""The copy of the conformance cases equals the shared folder, if that exists."""

from __future__ import annotations

from pathlib import Path

import pytest

COPY = Path(__file__).parent / "cases"
ORIGINAL = Path(__file__).parents[3] / "shared" / "conformance"


def contents(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_the_copy_has_cases() -> None:
    assert (COPY / "history_batch" / "index.csv").is_file()


@pytest.mark.skipif(not ORIGINAL.is_dir(), reason="the shared folder is not beside this checkout")
def test_the_copy_equals_the_shared_cases() -> None:
    copy, original = contents(COPY), contents(ORIGINAL)
    assert sorted(copy) == sorted(original), "run `make cases`"
    different = [name for name in original if copy[name] != original[name]]
    assert different == [], "run `make cases`"
