"""A page in headless Chromium, without network: what it draws, its errors, its screenshots."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages import Page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--virtual-time-budget=8000",
    "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason=f"no browser on PATH ({', '.join(BROWSERS)}): pages are only parsed"
)


def script_element(script: str) -> str:
    """The body of an async function, run when the page has drawn its charts; ends the page."""
    return (
        "<script>(async function () { function pause(ms) { return new Promise(function (go)"
        " { setTimeout(go, ms); }); }"
        " while (!document.documentElement.dataset.ready) await pause(20);"
        f" var made = await (async function () {{ {script} }})();"
        " document.documentElement.dataset.result = JSON.stringify(made);"
        " })();</script></body>"
    )


def played(
    html: str, folder: Path, script: str, place: str = "", options: tuple[str, ...] = ()
) -> tuple[Any, Page]:
    """The JSON value that `script`, the body of an async function, returns, and the page after it.

    The script starts when the page has drawn its charts. Fails if the page reports an error.
    """
    file = folder / "page.html"
    # The libraries contain the text </body>, too.
    before, _, after = html.rpartition("</body>")
    file.write_text(before + script_element(script) + after, encoding="utf-8")
    done = subprocess.run(
        [str(BROWSER), *OPTIONS, *options, f"--user-data-dir={folder / 'user'}", "--dump-dom",
         f"{file.as_uri()}{place}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, "\n".join(complaints)
    page = Page(done.stdout)
    (root,) = page.all("html")
    assert root.get("data-result") is not None, "the script did not end"
    return json.loads(str(root["data-result"])), page
