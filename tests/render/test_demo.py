"""The command `dbt-history demo` without Spark: its project, its settings, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import dbt_history
from dbt_history.cli import main
from dbt_history.demo import command


def test_delta_is_fetched_only_where_no_configuration_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert command.DELTA in command.spark_arguments(tmp_path)
    (tmp_path / "spark-defaults.conf").write_text("spark.jars file:///jars/delta-spark.jar\n")
    found = command.spark_arguments(tmp_path)
    assert "spark.jars.packages" not in found
    assert f"databaseName={tmp_path}/metastore" in found


def test_a_missing_package_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(dbt_history, "__file__", str(tmp_path / "a/b/c/__init__.py"))

    done = CliRunner().invoke(main, ["demo", "--no-open"])

    assert done.exit_code == 1
    assert "the dbt package was not found" in done.output
    assert not list(tmp_path.iterdir())


def test_the_project_links_only_what_dbt_needs_of_the_package(tmp_path: Path) -> None:
    command.write_project(tmp_path, command.package_folder())

    installed = tmp_path / "dbt_packages/dbt_history"
    assert sorted(path.name for path in installed.iterdir()) == ["dbt_project.yml", "macros"]
    assert (installed / "macros/versions/history_batch.sql").is_file()
    assert "history_batch" in (tmp_path / "models/items.sql").read_text("utf-8")
