"""The command `dbt-history docs`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbt_history.explore.project import ExploreError, open_project, reason
from dbt_history.extras import not_installed
from dbt_history.operations import dbt_options
from dbt_history.options import project_options, target_path

if TYPE_CHECKING:
    from dbt_history.docs.manifest import Project
    from dbt_history.docs.pages import Content

LEFT_OUT = {"target", "dbt_packages", "node_modules", "site-packages", "logs"}


def guides_of(folder: Path) -> dict[str, list[str]]:
    """The README and the Markdown files below docs/, in the order of their names."""
    found = [
        str(path.relative_to(folder))
        for path in sorted((folder / "docs").rglob("*.md"))
        if not LEFT_OUT & set(path.relative_to(folder).parts)
    ]
    return {"Guides": found}


@click.command("docs")
@click.option(
    "--out",
    default="site",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the site; it is replaced.",
)
@target_path(" in the project: results of the last tests are read from it")
@project_options
def docs_command(
    out: Path,
    target_path: Path,
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
) -> None:
    """Make a site of the project's history tables, guides and dbt's documentation.

    Each history table has a page: what a row is, key and convention, first and last version,
    versions per day, horizon, tags, tests with their last results, columns and lineage. The README
    and the Markdown files in docs/ are pages, too. The site needs no server and no network.

    \b
    Examples: dbt-history docs          after dbt build
              dbt-history docs --out public --target prod

    \b
    Exit codes: 0  the site is written
                1  no dbt project with the package, or dbt failed
                2  the options are invalid
    """
    try:
        from dbt_history.docs.pages import MARK, Content, write
    except ImportError as error:
        raise click.ClickException(not_installed(str(error.name), "docs")) from None
    if out.exists() and not (out / MARK).is_file() and any(out.iterdir()):
        raise ExploreError(f"{out} is not empty and not a site: name another folder with --out")
    results = project_dir / target_path
    root = project_dir.resolve()

    def content(project: Project) -> Content:
        readme = ["README.md"] if (root / "README.md").is_file() else []
        return Content(
            project.name, root, results / "dbt_history_docs", guides_of(root), unlisted=readme
        )

    made = site_files(content, project_dir, profiles_dir, target, results)
    write(out, made)
    count = sum(path.endswith(".html") for path in made)
    click.echo(f"{count} pages: open {(out / 'index.html').resolve()}")


def site_files(
    content: Callable[[Project], Content],
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
    results: Path,
) -> Mapping[str, str | bytes]:
    """All files of the site of a project. Raises ExploreError, SiteError."""
    from dbt_history.docs.manifest import Project
    from dbt_history.docs.pages import Site
    from dbt_history.docs.tables import last_results, read_facts

    # `dbt docs generate` writes results of its own, so it gets a folder of its own.
    states = last_results(results)
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder), project_dir, profiles_dir, target, results)
        project = Project.read(Path(folder))
        images = images_of_dbt(Path(folder))
    with open_project(project_dir, profiles_dir, target) as opened:
        facts = {node["unique_id"]: read_facts(opened, node) for node in project.histories}
    return {**images, **Site(project, content(project), facts, states).all_files()}


def images_of_dbt(folder: Path) -> dict[str, bytes]:
    """The images that dbt copied from the project's `asset-paths`, by path in the site.

    dbt's page has the descriptions as they were written, with these addresses.
    """
    from dbt_history.docs.markdown import IMAGES

    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in IMAGES and file.is_file()
    }


def generate(
    folder: Path,
    project_dir: Path,
    profiles_dir: Path | None,
    target: str | None,
    results: Path,
) -> None:
    """Run `dbt docs generate` with `folder` as its target folder. Raises ExploreError."""
    try:
        from dbt.cli.main import dbtRunner
    except ImportError:
        raise ExploreError(not_installed("dbt", "docs")) from None
    if (parsed := results / "partial_parse.msgpack").is_file():
        shutil.copy(parsed, folder)
    options = ["--project-dir", str(project_dir), "--target-path", str(folder)]
    options += dbt_options(profiles_dir, target)
    done = dbtRunner().invoke(["--quiet", "docs", "generate", *options])
    if not done.success:
        raise ExploreError(reason(done.exception or "dbt docs generate failed"))
