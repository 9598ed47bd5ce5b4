"""A page of `explore --serve` in headless Chromium, with a script in it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import waitress

from dbt_history.explore.server import App
from tests.support.browser import OPTIONS, result_of, script_element
from tests.support.pages import Page


@contextmanager
def listening(app: App, script: str) -> Iterator[str]:
    """The address of the app, whose page runs the script; each request is answered in turn."""
    lock = threading.Lock()

    def scripted(
        environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], Any]
    ) -> Iterable[bytes]:
        with lock:
            status, text, headers = app.reply(environ)
        if "text/html" in str(headers):
            before, _, after = text.rpartition("</body>")
            text = before + script_element(script) + after
        start(status, headers)
        return [text.encode()]

    server = waitress.create_server(scripted, host="127.0.0.1", port=0)

    def run() -> None:
        # Closing the sockets ends the loop.
        with suppress(OSError):
            server.run()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield app.listens_on(server.effective_port)
    finally:
        server.task_dispatcher.shutdown()
        server.close()


def played_by_server(
    app: App, folder: Path, script: str, options: tuple[str, ...]
) -> tuple[Any, Page]:
    """As `played` for a page of a file."""
    with_network = (one for one in OPTIONS if "resolver" not in one)
    with listening(app, script) as address:
        return result_of(address, folder, (*with_network, *options))
