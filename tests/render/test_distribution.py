"""What pip installs: the wheel and the source archive, built without a network."""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from flit_core import buildapi  # type: ignore[import-untyped]

from dbt_history import __version__
from dbt_history.extras import not_installed
from tests.support.markdown import page
from tests.support.project import ROOT


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """flit reads the project in the current folder."""
    monkeypatch.chdir(ROOT)


def test_the_wheel_has_every_file_of_the_package_and_its_command(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        names = set(wheel.namelist())
        info = f"dbt_history-{__version__}.dist-info"
        metadata = Parser().parsestr(wheel.read(f"{info}/METADATA").decode())
        commands = wheel.read(f"{info}/entry_points.txt").decode()
    package = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/dbt_history").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package - names == set()
    assert "dbt-history=dbt_history.cli:main" in commands.replace(" ", "")
    assert metadata["Name"] == "dbt-history"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert {"dbt", "serve", "timeline", "connect"} <= set(metadata.get_all("Provides-Extra", []))
    for field in ("Summary", "Keywords", "Classifier", "Requires-Python"):
        assert metadata[field], field
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_archive_has_what_builds_the_wheel(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / buildapi.build_sdist(str(tmp_path))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/dbt_history/cli.py"} <= names


def test_the_dbt_package_and_the_python_package_have_one_version() -> None:
    project = yaml.safe_load(page("dbt_project.yml"))
    assert project["version"] == __version__
    assert f'version = "{__version__}"' in page("pyproject.toml")
    assert project["require-dbt-version"]


def test_no_file_has_the_address_of_a_package_registry() -> None:
    """pip, Spark, npm and podman know theirs, or the user's mirror."""
    address = re.compile(
        r"maven[.]org|pypi[.]org|pythonhosted[.]org|docker[.]io|ghcr[.]io|quay[.]io"
        r"|npmjs[.](?:org|com)|unpkg[.]com|jsdelivr[.]net"
    )
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert listed
    found = [
        name
        for name in listed
        if (ROOT / name).is_file() and address.search((ROOT / name).read_text(errors="ignore"))
    ]
    assert found == []


def test_no_page_or_message_installs_the_package_from_an_index() -> None:
    """It is on none (docs/commands.md): a checkout or an address follows the name."""
    by_name = re.compile(r"pip install\s+(['\"]?)dbt-history(\[[\w,]+\])?\1(?!\w| @)")
    files = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "src").rglob("*.py")]
    assert [str(file) for file in files if by_name.search(file.read_text("utf-8"))] == []
    extras = tomllib.loads(page("pyproject.toml"))["project"]["optional-dependencies"]
    named = {
        extra
        for file in (ROOT / "src").rglob("*.py")
        for extra in re.findall(r'not_installed\([^\n]*"(\w+)"\)', file.read_text("utf-8"))
    }
    assert {"dbt", "docs", "explore", "serve", "timeline"} <= named <= set(extras)
    assert '"<folder>[serve]"' in not_installed("grpc", "serve")
