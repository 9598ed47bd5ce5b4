"""The command `dbt-history doctor`: what an installation lacks, and the line to write."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import click

from dbt_history.operations import OperationError, dbt_options, run_operation
from dbt_history.options import project_options

Level = Literal["ok", "note", "problem"]
FACTS = re.compile(r"^-- facts: (\{.*\})$", re.MULTILINE)
# What the package accepts: the lowest version, and the first one above.
SUPPORTED = {
    "dbt-core": ((1, 10, 6), (3,)),
    "dbt-spark": ((1, 10), (2,)),
    "pyspark": ((4, 1), (4, 2)),
}
# What README and the guides install.
INSTALL = 'pip install "dbt-core>=1.10.9,<1.12" "dbt-spark[session]>=1.11,<2" "pyspark>=4.1,<4.2"'
JARS = "spark.jars.packages: io.delta:delta-spark_4.1_2.13:4.4.0"
TESTED_SPARK = "4.1"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
MANY_PARTITIONS = 64
NO_JARS = ("the session has no jars of Delta", JARS)
NO_SETTINGS = (
    "the settings of the session lack Delta's extension or catalog",
    f"spark.sql.extensions: {EXTENSION}, and spark.sql.catalog.spark_catalog: {CATALOG}",
)
NO_JAVA = ("Spark's Java does not start", "export JAVA_HOME=<Java 17 or 21>")
IN_USE = ("another process uses the local metastore", "end the other dbt or Spark process")
# Part of dbt's message: what it means, and the line to write. The first one that is found counts:
# Java also exits if Spark cannot download a jar.
FAILURES = {
    "class io.delta.package not found": NO_JARS,
    "Failed to find the data source: delta": NO_JARS,
    "unresolved dependency": ("Spark cannot download Delta's jars of this version", JARS),
    "UnsupportedClassVersionError": ("Java is too old", "export JAVA_HOME=<Java 17 or 21>"),
    "Unable to locate a Java Runtime": NO_JAVA,
    "JAVA_GATEWAY_EXITED": NO_JAVA,
    "Cannot find catalog plugin class": NO_JARS,
    "ClassNotFoundException: io.delta": NO_JARS,
    "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG": NO_SETTINGS,
    "Another instance of Derby": IN_USE,
    "SessionHiveMetaStoreClient": IN_USE,
    "SCHEMA_NOT_FOUND": IN_USE,
    "dbt deps": ("packages are not installed", "dbt deps"),
    "could not find a macro": (
        "the package dbt_history is not installed, or is older than this command",
        "dbt deps --upgrade",
    ),
    "Could not find profile": ("dbt finds no profile", "dbt debug"),
    "dbt is not installed": ("dbt is not installed", INSTALL),
}


@dataclass(frozen=True)
class Finding:
    """One check; `line` is what to write or run where something is missing."""

    level: Level
    what: str
    found: str
    line: str = ""


def numbers(text: str) -> tuple[int, ...]:
    """`1.10.6rc1` as (1, 10, 6)."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def packages(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Python and the packages in dbt's environment. Without dbt-core there is no dbt."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok" if sys.version_info >= (3, 11) else "problem", "Python", python)
    for name, (lowest, above) in SUPPORTED.items():
        text = versions.get(name)
        ends = [".".join(map(str, end)) for end in (lowest, above)]
        if text is None:
            yield Finding("problem", name, "not installed", INSTALL)
        elif not lowest <= numbers(text) < above:
            yield Finding("problem", name, f"{text}, not between {ends[0]} and {ends[1]}", INSTALL)
        else:
            yield Finding("ok", name, text)


def session(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """Spark, Delta and the settings of the session that dbt uses."""
    spark = str(facts["spark"]).split(" ")[0]
    is_tested = spark.split(".")[:2] == TESTED_SPARK.split(".")
    yield Finding(
        "ok" if is_tested else "note", "Spark", spark if is_tested else f"{spark}, not tested"
    )
    settings = facts["settings"]
    delta = facts["delta"]
    yield Finding("note" if delta is None else "ok", "Delta", str(delta or "version not known"))
    for name, value in (
        ("spark.sql.extensions", EXTENSION),
        ("spark.sql.catalog.spark_catalog", CATALOG),
    ):
        text = settings.get(name)
        is_set = text is not None and value in text.split(",")
        line = f"{name}: {','.join(filter(None, [text if 'ext' in name else None, value]))}"
        yield Finding(
            "ok" if is_set else "problem", name, text or "not set", "" if is_set else line
        )
    zone = str(settings.get("spark.sql.session.timeZone"))
    is_utc = zone in ("UTC", "Etc/UTC", "Z", "GMT")
    line = "" if is_utc else "spark.sql.session.timeZone: UTC"
    yield Finding("ok" if is_utc else "note", "time zone", zone, line)
    kind = str(settings.get("spark.sql.timestampType") or "TIMESTAMP_LTZ").upper()
    has_zone = kind != "TIMESTAMP_NTZ"
    found = kind + ("" if has_zone else ": a timestamp has no zone, runs are refused")
    line = "" if has_zone else "spark.sql.timestampType: TIMESTAMP_LTZ"
    yield Finding("ok" if has_zone else "problem", "timestamp type", found, line)
    for name, few, default in (
        ("spark.sql.shuffle.partitions", "<number of cores>", 200),
        ("spark.databricks.delta.snapshotPartitions", "2", 50),
    ):
        number = str(settings.get(name) or default)
        # Databricks also has `auto`.
        is_few = not number.isdigit() or int(number) < min(default, MANY_PARTITIONS)
        found = number + ("" if is_few else ": slow for small tables")
        line = "" if is_few else f"{name}: {few}"
        yield Finding("ok" if is_few else "note", name, found, line)
    if facts.get("method") == "session":
        threads = int(facts["threads"])
        found = f"{threads}" + ("" if threads == 1 else " for one session with shared names")
        yield Finding(
            "ok" if threads == 1 else "problem", "threads", found,
            "" if threads == 1 else "threads: 1",
        )  # fmt: skip


def sources(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """What history models read. A feed has every change between two runs.

    A SELECT other than `select * from` one table is compared, whatever its sources have.
    """
    for name in facts.get("compared", []):
        found = (
            "the SELECT is compared with the table in each run; only the state at each run is known"
        )
        yield Finding("note", f"model {name}", found)
    for source in facts["sources"]:
        if not source["is_table"]:
            continue
        name, table = f"source {source['table']}", source["table"]
        if source["feed"]:
            yield Finding("ok", name, "change data feed")
        elif source["is_delta"]:
            line = f"alter table {table} set tblproperties ('delta.enableChangeDataFeed' = 'true')"
            yield Finding("note", name, "no feed: only the state at each run is known", line)
        else:
            yield Finding("note", name, "not Delta: only the state at each run is known")


def explanation(output: str) -> tuple[str, str] | None:
    """What a message of dbt or Spark means, and the line to write."""
    return next((FAILURES[text] for text in FAILURES if text.lower() in output.lower()), None)


def failure(output: str) -> Finding:
    """What dbt's message means."""
    known = explanation(output)
    if known:
        return Finding("problem", "dbt", *known)
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return Finding("problem", "dbt", lines[-1] if lines else "it failed without a message")


def render(findings: list[Finding]) -> Iterator[str]:
    """A line per check, and below it the line to write."""
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        yield f"{finding.level:<8} {finding.what:<{width}}  {finding.found}".rstrip()
        if finding.line:
            yield f"{'':<9}write: {finding.line}"
    counts = [sum(one.level == level for one in findings) for level in ("problem", "note")]
    yield f"{counts[0]} problem{'s' * (counts[0] != 1)}, {counts[1]} note{'s' * (counts[1] != 1)}"


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of lines.")
@project_options
def doctor_command(
    project_dir: Path, profiles_dir: Path | None, target: str | None, as_json: bool
) -> None:
    """Check versions, Delta, settings, threads and sources, and print the line to write.

    Runs dbt once with the profile of the project. Writes nothing.

    \b
    Examples: dbt-history doctor
              dbt-history doctor --target cluster --json

    \b
    Exit codes: 0  no problem; notes are advice
                1  a problem was found
                2  the options are invalid
    """
    findings = list(packages({name: installed(name) for name in SUPPORTED}))
    options = dbt_options(profiles_dir, target)
    try:
        output = run_operation(project_dir, "dbt_history._doctor_facts", {}, options)
        found = FACTS.search(output)
        if found is None:
            raise OperationError(output)
        facts = json.loads(found[1])
        findings += [*session(facts), *sources(facts)]
    except OperationError as error:
        findings.append(failure(str(error)))
    is_well = all(finding.level != "problem" for finding in findings)
    if as_json:
        document = {"ok": is_well, "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo("\n".join(render(findings)))
    if not is_well:
        raise SystemExit(1)
