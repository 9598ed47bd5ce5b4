"""Both ends of the range of dbt versions, each in an environment of its own.

    scripts/matrix.py [oldest] [newest]     default: both

    oldest   the lowest dbt-core that the package accepts, with the newest dbt-spark that fits it
    newest   whatever a user who installs dbt today gets, within the range

In each: `dbt parse` of this project; `dbt build`, twice, of the consumer in `integration_tests`.
The environments are not locked: what the registry offers is what is tested. They lie in
`.state/matrix`. Standard library alone.
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
# The platform does not move with dbt: these are the versions of pyproject.toml.
PLATFORM = ["dbt-spark", "pyspark==4.1.4", "delta-spark==4.4.0", "pandas<3", "pyarrow<23"]
# Not installable everywhere, and dbt-core works without it (docs/decisions/0001).
OVERRIDE = "dbt-core-experimental-parser; python_version < '0'\n"


def install(uv: str, end: str) -> Path:
    """A fresh environment with that end of the range; the folder of its programs."""
    place = FOLDER / end
    shutil.rmtree(place, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    override = FOLDER / "override.txt"
    override.write_text(OVERRIDE)
    env = uv_environment()
    run([uv, "venv", "--quiet", "--python", sys.executable, str(place)], f"making {end}", env)
    wanted = ["--python", str(place / "bin/python"), "--override", str(override)]
    packages = [*ENDS[end], *PLATFORM]
    run([uv, "pip", "install", "--quiet", *wanted, *packages], f"installing {end}", env)
    return place / "bin"


def versions(programs: Path) -> str:
    code = "from importlib.metadata import version as v; print(v('dbt-core'), v('dbt-spark'))"
    done = subprocess.run(
        [str(programs / "python"), "-c", code], capture_output=True, text=True, check=True
    )
    core, spark = done.stdout.split()
    return f"dbt-core {core}, dbt-spark {spark}"


def try_out(programs: Path, end: str) -> bool:
    """Parse this project, build the consumer twice; what a command prints is shown if it fails."""
    place = FOLDER / f"{end}_project"
    shutil.rmtree(place, ignore_errors=True)
    ignored = shutil.ignore_patterns("dbt_packages", "target", "logs", "package-lock.yml")
    shutil.copytree(ROOT / "integration_tests", place, ignore=ignored)
    (place / "packages.yml").write_text(f'packages:\n  - local: "{ROOT}"\n')
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
        word = "ok" if done.returncode == 0 else "failed"
        where = "this project" if folder == ROOT else "the consumer"
        say(end, f"{command[0]} of {where}: {word} ({time.monotonic() - started:.0f} s)")
        if done.returncode != 0:
            print("\n".join((done.stdout + done.stderr).strip().splitlines()[-40:]))
            is_right = False
    return is_right


def main() -> int:
    try:
        uv = set_up_uv()
        results = {}
        for end in sys.argv[1:] or ENDS:
            programs = install(uv, end)
            say(end, versions(programs))
            results[end] = try_out(programs, end)
    except SetupError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 1
    passed = sum(results.values())
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
