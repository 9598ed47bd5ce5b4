"""The Containerfile, built and started where the machine has a builder of images."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.support.project import ROOT

IMAGE = "localhost/dbt-history-test"
# `buildah run` ignores the entry point. Its container may have no entry for its own host name in
# /etc/hosts, and Java resolves that name.
BY_BUILDAH = (
    'echo "127.0.0.1 $(hostname)" >> /etc/hosts; cd /data; exec setpriv --reuid dbt_history'
    " --regid dbt_history --clear-groups env HOME=/home/dbt_history {entry} --check"
)


def called(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def builder() -> str:
    """The first program that can build images here: a docker may have no daemon."""
    for name in ("podman", "docker", "buildah"):
        if shutil.which(name) and called(name, "info").returncode == 0:
            return name
    pytest.skip("no podman, docker or buildah")


@pytest.mark.thorough
def test_the_image_is_built_and_its_destination_tests_itself() -> None:
    program = builder()
    text = (ROOT / "Containerfile").read_text("utf-8")
    (base,) = re.findall(r"^FROM (\S+)$", text, re.M)
    (entry,) = re.findall(r"^ENTRYPOINT \[(.*)\]$", text, re.M)
    pulled = called(program, "pull", base)
    if pulled.returncode and not called(program, "images", "-q", base).stdout:
        pytest.skip(f"{base} cannot be pulled: {pulled.stderr[-200:]}")

    never = [] if program == "docker" else ["--pull-never"]
    build = "bud" if program == "buildah" else "build"
    built = called(program, build, *never, "-t", IMAGE, ".")
    assert built.returncode == 0, built.stderr[-2000:]
    if program == "buildah":
        name = called(program, "from", "--pull-never", IMAGE).stdout.strip()
        command = BY_BUILDAH.format(entry=" ".join(re.findall(r'"([^"]+)"', entry)))
        checked = called(program, "run", "--user", "root", name, "--", "sh", "-c", command)
        called(program, "rm", name)
    else:
        checked = called(program, "run", "--rm", IMAGE, "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr[-2000:]
    lines = [line for line in checked.stdout.splitlines() if line]
    assert len(lines) >= 10
    assert all(line.startswith("ok ") for line in lines), checked.stdout
