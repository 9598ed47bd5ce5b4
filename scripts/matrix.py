"""Test the oldest and the newest supported dbt, and the next major, in separate environments.

    scripts/matrix.py [oldest] [newest] [next]     default: all

    oldest   the lowest dbt-core that the package accepts, with the newest compatible dbt-spark
    newest   the newest versions in the range
    next     the newest dbt-core 2 that the registry has as a wheel

With oldest and newest: `dbt parse` of this project, and `dbt build`, twice, of the consumer in
`integration_tests`. With next, which has no session mode: `dbt parse` of both; skipped if there is
no wheel. The environments are not locked, so they test what the registry offers today. They are in
`.state/matrix`. Uses only the standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.setup import ROOT, STATE, SetupError, run, say, set_up_uv, uv_environment

FOLDER = STATE / "matrix"
ENDS = {"oldest": ["dbt-core==1.10.6"], "newest": ["dbt-core<3"]}
# Source archives of later versions download a program during their installation.
NEXT = ["--no-build", "--no-deps", "--prerelease", "allow", "dbt-core>=2.0.0a1,<3"]
# The locked versions of the platform: only dbt varies.
PLATFORM = ["dbt-spark", "pyspark==4.1.4", "pandas<3", "pyarrow<23"]
# Not installable everywhere, and dbt-core works without it (docs/decisions/0001).
OVERRIDE = "dbt-core-experimental-parser; python_version < '0'\n"


def install(uv: str, end: str) -> Path:
    """Create the environment of a range end; returns the folder of its programs."""
    place = FOLDER / end
    shutil.rmtree(place, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    override = FOLDER / "override.txt"
    override.write_text(OVERRIDE)
    env = uv_environment()
    run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], f"making {end}", env)
    wanted = NEXT if end == "next" else ["--override", str(override), *ENDS[end], *PLATFORM]
    python = ["--python", str(place / "bin/python")]
    run([uv, "pip", "install", "--quiet", *python, *wanted], f"installing {end}", env)
    return place / "bin"


def install_next(uv: str) -> Path | None:
    """Create an environment with dbt 2; print the reason and return None if that fails."""
    try:
        return install(uv, "next")
    except SetupError as error:
        say("next", f"skipped: no wheel of dbt-core 2 to install ({str(error).splitlines()[-1]})")
        return None


def versions(programs: Path) -> str:
    code = "from importlib.metadata import version as v; print(v('dbt-core'), v('dbt-spark'))"
    done = subprocess.run(
        [str(programs / "python"), "-c", code], capture_output=True, text=True, check=True
    )
    core, spark = done.stdout.split()
    return f"dbt-core {core}, dbt-spark {spark}"


def consumer(place: Path, package: Path) -> Path:
    """Copy the consumer project, with the package installed from a folder."""
    shutil.rmtree(place, ignore_errors=True)
    ignored = shutil.ignore_patterns("dbt_packages", "target", "logs", "package-lock.yml")
    shutil.copytree(ROOT / "integration_tests", place, ignore=ignored)
    (place / "packages.yml").write_text(f'packages:\n  - local: "{package}"\n')
    return place


def report(end: str, what: str, started: float, done: subprocess.CompletedProcess[str]) -> bool:
    """Print the result of a command, and its output if it failed."""
    word = "ok" if done.returncode == 0 else "failed"
    say(end, f"{what}: {word} ({time.monotonic() - started:.0f} s)")
    if done.returncode != 0:
        print("\n".join((done.stdout + done.stderr).strip().splitlines()[-40:]))
    return done.returncode == 0


def test_end(programs: Path, end: str) -> bool:
    """Parse this project and build the consumer twice."""
    place = consumer(FOLDER / f"{end}_project", ROOT)
    env = {
        **os.environ,
        "DBT_TARGET_PATH": str(place / "target"),
        "DBT_LOG_PATH": str(place / "logs"),
        "CONSUMER_WAREHOUSE": str(place / "warehouse"),
        "PYSPARK_PYTHON": str(programs / "python"),
        "SPARK_HOME": str(next((programs.parent / "lib").glob("python*/site-packages/pyspark"))),
    }
    dbt = [str(programs / "dbt"), "--no-use-colors", "--no-send-anonymous-usage-stats"]
    is_right = True
    for folder, command in (
        (ROOT, ["parse", "--no-partial-parse"]),
        (place, ["deps"]),
        (place, ["build"]),
        (place, ["build"]),
    ):
        started = time.monotonic()
        done = subprocess.run(
            [str(ROOT / "scripts/run"), "env", f"SPARK_HOME={env['SPARK_HOME']}",
             f"PYSPARK_PYTHON={env['PYSPARK_PYTHON']}", f"DBT_TARGET_PATH={env['DBT_TARGET_PATH']}",
             f"DBT_LOG_PATH={env['DBT_LOG_PATH']}", *dbt, *command],
            cwd=folder, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        where = "this project" if folder == ROOT else "the consumer"
        is_right &= report(end, f"{command[0]} of {where}", started, done)
    return is_right


def parse_next(programs: Path) -> bool:
    """Parse copies of this project and the consumer, because dbt 2 writes into them."""
    copy = FOLDER / "next_package"
    shutil.rmtree(copy, ignore_errors=True)
    for name in ("macros", "models", "seeds", "snapshots", "tests/data"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("dbt_project.yml", "profiles.yml"):
        shutil.copy(ROOT / name, copy)
    place = consumer(FOLDER / "next_project", copy)
    profile = place / "profiles.yml"
    profile.write_text(profile.read_text().replace("method: session", "method: thrift"))
    env = {**os.environ, "DBT_ALLOW_EXPERIMENTAL_ADAPTERS": "true", "DO_NOT_TRACK": "1"}
    dbt = str(programs / "dbt")
    shown = subprocess.run([dbt, "--version"], env=env, capture_output=True, text=True, check=True)
    say("next", shown.stdout.strip())
    is_right = True
    for folder, command in (
        (copy, ["parse", "--target", "cluster"]),
        (place, ["deps"]),
        (place, ["parse"]),
    ):
        started = time.monotonic()
        done = subprocess.run(
            [dbt, *command], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        where = "this project" if folder == copy else "the consumer"
        is_right &= report("next", f"{command[0]} of {where}", started, done)
    return is_right


def main() -> int:
    try:
        uv = set_up_uv()
        results = {}
        for end in sys.argv[1:] or [*ENDS, "next"]:
            if end == "next":
                if programs := install_next(uv):
                    results[end] = parse_next(programs)
                continue
            programs = install(uv, end)
            say(end, versions(programs))
            results[end] = test_end(programs, end)
    except SetupError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    passed = sum(results.values())
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
