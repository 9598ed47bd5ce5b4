"""A MariaDB server on a socket in a folder of its own.

The programs are those of PATH, else Debian's packages, which are unpacked into `.state/mariadb`
without being installed. A server without its system tables starts with `--skip-grant-tables`, so
no database has to be set up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.project import ROOT

FOLDER = ROOT / ".state" / "mariadb"
PACKAGES = ("mariadb-server-core", "mariadb-client-core")
# Of these packages' dependencies, those that a small system lacks.
LIBRARIES = ("libaio1", "libaio1t64", "libnuma1", "liburing2", "libmariadb3", "libedit2")
SECONDS_TO_START = 60


class UnavailableError(Exception):
    """There is no MariaDB here; the message says why."""


@dataclass(frozen=True)
class Programs:
    """Server and client, and the options and libraries that unpacked ones need."""

    server: str
    client: str
    options: tuple[str, ...] = ()
    libraries: str = ""

    def environment(self) -> dict[str, str]:
        known = os.environ.get("LD_LIBRARY_PATH", "")
        paths = [path for path in (self.libraries, known) if path]
        return {**os.environ, **({"LD_LIBRARY_PATH": ":".join(paths)} if paths else {})}


def find_programs() -> Programs:
    """The programs of PATH, else the unpacked packages; downloads them the first time."""
    server, client = shutil.which("mariadbd"), shutil.which("mariadb")
    if server and client:
        return Programs(server, client)
    if not (FOLDER / "usr/sbin/mariadbd").exists():
        unpack_packages()
    share = FOLDER / "usr/share/mysql"
    libraries = {str(path.parent) for path in FOLDER.glob("**/lib*.so.*")}
    return Programs(
        str(FOLDER / "usr/sbin/mariadbd"),
        str(FOLDER / "usr/bin/mariadb"),
        (f"--lc-messages-dir={share}", f"--character-sets-dir={share / 'charsets'}"),
        ":".join(sorted(libraries)),
    )


def unpack_packages() -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise UnavailableError("there is no mariadbd on PATH, and no apt-get and dpkg-deb")
    FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as folder:
        unpacked = Path(folder) / "unpacked"
        done = download(folder, PACKAGES)
        if done.returncode != 0:
            # Old lists name packages that are gone; only root may renew them.
            subprocess.run(["apt-get", "update"], capture_output=True, check=False)
            done = download(folder, PACKAGES)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or ["without a message"])[-1]
            raise UnavailableError(f"apt-get download of {PACKAGES[0]} failed: {reason}")
        for library in LIBRARIES:
            # A release does not have all of these names.
            download(folder, (library,))
        for package in sorted(Path(folder).glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(package), str(unpacked)], check=True)
        unpacked.rename(FOLDER)


def download(folder: str, packages: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "download", *packages], cwd=folder, capture_output=True, text=True, check=False
    )


@dataclass(frozen=True)
class MariaDB:
    """A server that runs."""

    programs: Programs
    socket: Path

    def query(self, script: str) -> list[Any]:
        """Run statements; the rows of their SELECTs, each of one JSON value."""
        done = subprocess.run(
            [
                self.programs.client,
                "--no-defaults",
                f"--socket={self.socket}",
                "--default-character-set=utf8mb4",
                "--skip-column-names",
                # As it is, without escapes: JSON has its own.
                "--raw",
                "--batch",
            ],
            input=script,
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=self.programs.environment(),
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [json.loads(line) for line in done.stdout.splitlines()]

    def version(self) -> str:
        return str(self.query("select json_quote(version())")[0]).partition("-")[0]


@contextmanager
def server() -> Iterator[MariaDB]:
    """Start a server with an empty folder; `UnavailableError` if it cannot be had."""
    programs = find_programs()
    # The path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="mariadb_") as folder:
        place = Path(folder)
        (place / "data").mkdir()
        log = place / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [
                    programs.server,
                    "--no-defaults",
                    *programs.options,
                    f"--datadir={place / 'data'}",
                    f"--tmpdir={place}",
                    f"--socket={place / 'socket'}",
                    f"--pid-file={place / 'pid'}",
                    # Root's consent to run as root.
                    *(["--user=root"] if os.geteuid() == 0 else []),
                    "--skip-networking",
                    "--skip-grant-tables",
                    "--innodb-buffer-pool-size=32M",
                    "--innodb-flush-log-at-trx-commit=0",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=programs.environment(),
            )
        try:
            running = MariaDB(programs, place / "socket")
            wait_until_ready(running, process, log)
            yield running
        finally:
            process.terminate()
            process.wait(SECONDS_TO_START)


def wait_until_ready(running: MariaDB, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < end:
        try:
            running.query("select 1")
            return
        except RuntimeError:
            time.sleep(0.1)
    last = (log.read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
    raise UnavailableError(f"{running.programs.server} did not start: {last}")
