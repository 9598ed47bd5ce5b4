"""Searches everything that was written for secrets."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path


def forms(secret: bytes) -> list[bytes]:
    """The ways in which a secret could be written."""
    encoded = base64.b64encode(secret)
    return [
        secret,
        encoded,
        base64.urlsafe_b64encode(secret),
        secret.hex().encode(),
        repr(secret)[2:-1].encode(),
        # In JSON within JSON, as in dbt's and Spark's logs.
        encoded.replace(b"/", b"\\/"),
    ]


def files_with(secrets: Iterable[bytes], folders: Iterable[Path], *texts: str) -> list[str]:
    """The files, by content or name, and the texts that contain one of the secrets."""
    searched = [form for secret in secrets for form in forms(secret)]
    assert searched
    found = [text[:80] for text in texts if any(form in text.encode() for form in searched)]
    for folder in folders:
        paths = list(folder.rglob("*"))
        assert paths, f"{folder} is empty"
        for path in paths:
            content = str(path).encode() + (path.read_bytes() if path.is_file() else b"")
            if any(form in content for form in searched):
                found.append(str(path))
    return found
