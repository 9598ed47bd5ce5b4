"""The command `dbt-history demo`.

One process runs dbt and reads the tables, so that Spark starts once.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click

import dbt_history
from dbt_history.explore.command import explore_command
from dbt_history.extras import not_installed

MODEL = "items.sql"
PROJECT: Mapping[str, Any] = {
    "name": "demo",
    "version": "1.0.0",
    "profile": "demo",
    "flags": {
        "send_anonymous_usage_stats": False,
        "require_generic_test_arguments_property": True,
    },
}
PROFILE = {
    "type": "spark",
    "method": "session",
    "host": "unused",
    "schema": "demo",
    "threads": 1,
    "server_side_parameters": {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
}
DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
NO_PACKAGE = (
    "the dbt package was not found: run this command in a checkout of dbt_history, or in a dbt"
    " project after `dbt deps`"
)


def package_folder() -> Path:
    """The dbt package: the checkout of this module, the current folder, or its dbt_packages."""
    here = Path.cwd()
    checkout = Path(dbt_history.__file__).resolve().parents[2]
    for folder in (checkout, here, here / "dbt_packages" / "dbt_history"):
        if (folder / "macros" / "versions" / "history_batch.sql").is_file():
            return folder
    raise click.ClickException(NO_PACKAGE)


def write_project(folder: Path, package: Path) -> None:
    """A dbt project with one model, its profile, and the package as `dbt deps` installs it."""
    installed = folder / "dbt_packages" / "dbt_history"
    (folder / "models").mkdir(parents=True)
    installed.mkdir(parents=True)
    # Links to the parts that dbt needs: a checkout has environments and examples besides.
    for name in ("dbt_project.yml", "macros"):
        (installed / name).symlink_to(package / name)
    outputs = {"target": "demo", "outputs": {"demo": PROFILE}}
    (folder / "dbt_project.yml").write_text(json.dumps(PROJECT))
    packages = {"packages": [{"local": str(package)}]}
    (folder / "packages.yml").write_text(json.dumps(packages))
    (folder / "profiles.yml").write_text(json.dumps({"demo": outputs}))
    sql = resources.files("dbt_history.demo").joinpath(MODEL).read_text("utf-8")
    (folder / "models" / MODEL).write_text(sql)


def spark_arguments(folder: Path) -> str:
    """Arguments of spark-submit: metastore and warehouse in `folder`, and Delta."""
    metastore = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    settings = SETTINGS | {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
    }
    configured = Path(os.environ.get("SPARK_CONF_DIR", "")) / "spark-defaults.conf"
    if not configured.is_file() or "delta-spark" not in configured.read_text("utf-8"):
        settings["spark.jars.packages"] = DELTA
    return " ".join(f'--conf "{name}={value}"' for name, value in settings.items()) + (
        " pyspark-shell"
    )


@click.command("demo")
@click.option("--open/--no-open", "is_opened", default=True, help="Open the page in the browser.")
def demo_command(is_opened: bool) -> None:
    """Build a small history in a temporary folder, and show it in a page.

    The documented example in five batches: versions, a deletion, a record that comes back and late
    rows. Needs dbt, Java 17 or 21, and no project or configuration. Takes about a minute.

    \b
    Examples: dbt-history demo
              dbt-history demo --no-open

    \b
    Exit codes: 0  the page is written
                1  a part is missing, or dbt failed
                2  the options are invalid
    """
    try:
        from dbt.cli.main import dbtRunner
    except ImportError:
        raise click.ClickException(not_installed("dbt", "dbt")) from None
    package = package_folder()
    folder = Path(tempfile.mkdtemp(prefix="dbt_history_demo_"))
    write_project(folder, package)
    click.echo(f"building a history in {folder}")
    os.environ |= {
        "PYSPARK_SUBMIT_ARGS": spark_arguments(folder),
        "DBT_TARGET_PATH": str(folder / "target"),
        "DBT_LOG_PATH": str(folder / "logs"),
    }
    places = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    done = dbtRunner().invoke(["run", "--quiet", *places])
    if not done.success:
        raise click.ClickException(f"dbt failed; its log is {folder / 'logs' / 'dbt.log'}")
    click.echo(f"items: {done.result.results[0].message}")  # type: ignore[union-attr]
    out = folder / "history.html"
    click.get_current_context().invoke(
        explore_command, tables=("items",), keys=(), show_hidden=False, out=out,
        project_dir=folder, profiles_dir=folder, target=None,
    )  # fmt: skip
    if is_opened:
        click.launch(str(out))
