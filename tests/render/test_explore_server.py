"""The server of `explore --serve`: who may ask it, and how it ends. Without Spark."""

from __future__ import annotations

import io
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from dbt_history.explore.answers import Answers, QuestionError, Served, number_of
from dbt_history.explore.project import DbtProject, ExploreError
from dbt_history.explore.server import App, Worker
from tests.support.waiting import TIMEOUT

TABLES: list[dict[str, Any]] = []


class Asked(Answers):
    """Answers with the question itself."""

    def __init__(self) -> None:
        super().__init__(SimpleNamespace(name="shop"), [])  # type: ignore[arg-type]

    def about(self) -> list[dict[str, Any]]:
        return TABLES

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if question.get("ask") == "broken":
            raise ExploreError("Spark has no table\nof this name")
        if question.get("ask") != "rows":
            raise QuestionError("unknown question")
        return {"asked": question}


def at_once(question: Callable[[], Any]) -> Any:
    return question()


@pytest.fixture
def app() -> App:
    made = App(Asked(), at_once)  # type: ignore[arg-type]
    made.listens_on(8000)
    return made


def request(app: App, path: str = "/", **more: Any) -> tuple[str, dict[str, str], str]:
    path, _, query = path.partition("?")
    body = more.pop("body", b"")
    environ = {
        "REQUEST_METHOD": more.pop("method", "GET"), "PATH_INFO": path, "QUERY_STRING": query,
        "HTTP_HOST": "127.0.0.1:8000", "wsgi.input": io.BytesIO(body), **more,
    }  # fmt: skip
    found: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        found.update(status=status, headers=dict(headers))

    text = b"".join(app(environ, start)).decode()
    return found["status"][:3], found["headers"], text


def asked(app: App, question: Any, **more: Any) -> tuple[str, Any]:
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    settings = {
        "method": "POST", "CONTENT_TYPE": "application/json", "HTTP_COOKIE": cookie(app), **more,
    }  # fmt: skip
    status, _, text = request(app, "/ask", body=body, **settings)
    return status, json.loads(text) if text.startswith("{") else text


def cookie(app: App) -> str:
    return f"dbt_history_8000={app.token}"


def test_a_request_needs_the_token_in_the_address_or_in_the_cookie(app: App) -> None:
    assert request(app)[0] == "403"
    assert request(app, "/?token=no")[0] == "403"
    assert request(app, HTTP_COOKIE="dbt_history_8000=no")[0] == "403"
    assert request(app, HTTP_COOKIE=f"dbt_history_8001={app.token}")[0] == "403", "of another port"
    assert request(app, HTTP_COOKIE="\x00=;;")[0] == "403"
    assert asked(app, {"ask": "rows"}, HTTP_COOKIE="")[0] == "403"

    status, headers, _ = request(app, f"/?token={app.token}")
    assert (status, headers["Location"]) == ("303", "/")
    assert headers["Set-Cookie"] == f"{cookie(app)}; HttpOnly; SameSite=Strict; Path=/"
    status, headers, text = request(app, HTTP_COOKIE=cookie(app))
    assert status == "200"
    assert "History of shop" in text
    assert app.token not in text
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"


def test_another_address_or_site_is_refused(app: App) -> None:
    """A name of another site that resolves to 127.0.0.1 is another Host."""
    for host in ("evil.example:8000", "127.0.0.1:8001", "127.0.0.1", ""):
        assert request(app, HTTP_COOKIE=cookie(app), HTTP_HOST=host)[0] == "403", host
    assert asked(app, {"ask": "rows"}, HTTP_ORIGIN="http://127.0.0.1:8000")[0] == "200"
    for origin in ("http://evil.example", "null", "https://127.0.0.1:8000"):
        assert asked(app, {"ask": "rows"}, HTTP_ORIGIN=origin)[0] == "403", origin


def test_a_question_is_a_json_object_and_errors_are_answers(app: App) -> None:
    assert asked(app, {"ask": "rows", "n": 1}) == ("200", {"asked": {"ask": "rows", "n": 1}})
    assert asked(app, {}, CONTENT_TYPE="text/plain")[0] == "415", "what a form could send"
    assert asked(app, b"{")[0] == "400"
    assert asked(app, [1])[0] == "400"
    assert asked(app, {"ask": "other"}) == ("400", {"error": "unknown question"})
    assert asked(app, {"ask": "broken"})[1] == {"error": "Spark has no table\nof this name"}
    assert request(app, "/other", HTTP_COOKIE=cookie(app))[0] == "404"
    assert request(app, "/ask", HTTP_COOKIE=cookie(app))[0] == "404"


def test_an_erasure_and_a_cleaning_after_the_start_are_found_with_the_next_question() -> None:
    """The first one of a schema makes its table of marks, which dbt has not seen."""
    there: list[str] = []
    cache: list[Any] = []
    marks = SimpleNamespace(render=lambda: "s.history_marks")

    def rows(sql: str) -> list[tuple[int]]:
        if sql.startswith("describe"):
            if not there:
                raise ExploreError("no such table")
            return []
        assert sql == "select 1 from s.history_marks where kind = 'erasure' limit 1"
        return [(1,)] if "erasure" in there else []

    class Project(DbtProject):
        def __init__(self) -> None:
            self.adapter = SimpleNamespace(
                get_relation=lambda **name: cache[0] if cache else None,
                cache_added=cache.append,
                Relation=SimpleNamespace(create=lambda **name: marks),
            )
            self.rows = rows  # type: ignore[method-assign]

    table: Any = SimpleNamespace(
        schema="s", name="h", key=("id",), columns={"id": "int", "v": "int"}, hidden=frozenset()
    )
    project = Project()
    one = Served(project, table, {}, {}, "0", [("v", "int")], {}, "", "true")
    answers = Answers(project, [one])
    answers.look_again()
    assert (cache, one.shown) == ([], "true")
    there.append("horizon")
    answers.look_again()
    assert (cache, one.shown) == ([marks], "true")
    there.append("erasure")
    answers.look_again()
    assert one.shown == "(`v` is not null)"


def test_numbers_of_a_question_are_numbers_in_their_range() -> None:
    assert number_of("-9223372036854775808") == -(2**63)
    assert number_of(7, 0, 7) == 7
    values: list[Any] = ["1; drop table t", None, [], {}, "9223372036854775808", "1e3"]
    for value in values:
        with pytest.raises(QuestionError):
            number_of(value)
    with pytest.raises(QuestionError, match="from 0 to 7"):
        number_of(8, 0, 7)


class Connections:
    """dbt's connections of a thread, counted."""

    def __init__(self) -> None:
        self.opened = 0
        self.is_open = False
        self.connections = self

    def get_if_exists(self) -> object | None:
        return self if self.is_open else None

    @contextmanager
    def connection_named(self, _: str) -> Iterator[None]:
        self.opened += 1
        self.is_open = True
        try:
            yield
        finally:
            self.is_open = False


def test_the_connection_is_kept_and_opened_again_after_an_error() -> None:
    adapter = Connections()
    worker = Worker(SimpleNamespace(adapter=adapter))  # type: ignore[arg-type]

    assert [worker(lambda: 1), worker(lambda: 2)] == [1, 2]
    assert adapter.opened == 1
    with pytest.raises(ZeroDivisionError):
        worker(lambda: 1 / 0)
    assert not adapter.is_open
    assert worker(lambda: 3) == 3
    assert adapter.opened == 2
    worker.close()
    assert not adapter.is_open


SERVER = """
import signal
from types import SimpleNamespace
from tests.render.test_explore_server import Asked, Connections
from dbt_history.explore.server import serve_tables

# A shell that starts the tests in the background lets them ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
answers = Asked()
answers.project = SimpleNamespace(name="shop", adapter=Connections())
serve_tables(answers, 0, lambda address: print(address, flush=True))
print("stopped", flush=True)
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=["terminated", "ctrl-c"])
def test_the_server_listens_on_the_loopback_address_only_and_ends_when_told(
    ending: signal.Signals,
) -> None:
    root = Path(__file__).parents[2]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().strip())
        port = address.port
        assert port is not None
        connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        connection.request("GET", f"/?{address.query}")
        assert connection.getresponse().status == 303
        connection.close()
        listening = [
            line.split()[1]
            for file in ("/proc/net/tcp", "/proc/net/tcp6")
            if Path(file).is_file()
            for line in Path(file).read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
        ]
        assert listening == [f"0100007F:{port:04X}"]
        server.send_signal(ending)
        rest, errors = server.communicate(timeout=TIMEOUT)
    finally:
        server.kill()
    assert (server.returncode, rest, errors) == (0, "stopped\n", "")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
