"""A page in headless Chromium, without network: what it draws, its errors, its screenshots."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import playwright.sync_api
import pytest

from tests.support.pages import Page
from tests.support.waiting import TIMEOUT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--no-first-run", "--virtual-time-budget=8000",
    "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
COUNTED_PRINT = """
    window.print = function () {
        dispatchEvent(new Event('beforeprint'));
        window.printed = Array.from(document.querySelectorAll('[role=table]')).map(function (one) {
            return [one.getAttribute('aria-label'), one.querySelectorAll('.grid-row').length, one.dataset.notPrinted];
        });
        dispatchEvent(new Event('afterprint'));
        document.documentElement.dataset.prints = (+document.documentElement.dataset.prints || 0) + 1;
    };
"""  # noqa: E501 - a script
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
    return result_of(f"{file.as_uri()}{place}", folder, (*OPTIONS, *options))


def result_of(address: str, folder: Path, options: Iterable[str]) -> tuple[Any, Page]:
    """The result of the script of a page, as `script_element` leaves it, and the page after it."""
    done = subprocess.run(
        [str(BROWSER), *options, f"--user-data-dir={folder / 'user'}", "--dump-dom", address],
        capture_output=True, text=True, check=True, timeout=TIMEOUT,
    )  # fmt: skip
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert not complaints, "\n".join(complaints)
    page = Page(done.stdout)
    (root,) = page.all("html")
    assert root.get("data-result") is not None, "the script did not end"
    return json.loads(str(root["data-result"])), page


@contextmanager
def opened(
    address: str, width: int = 1280, height: int = 800, scheme: str = "light"
) -> Iterator[playwright.sync_api.Page]:
    """The page in a window of this size, when it has drawn its charts, for keys and clicks.

    Fails at the end if the page reported an error. Its own `print` only counts the rows that a
    print would have, in `window.printed`; `data-prints` of the root says how often it was called.
    """
    complaints: list[str] = []
    with playwright.sync_api.sync_playwright() as kit:
        browser = kit.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.add_init_script(COUNTED_PRINT)
        page.goto(address)
        page.wait_for_selector("html[data-ready]")
        yield page
        browser.close()
    assert not complaints, "\n".join(complaints)
