"""The server of `dbt-history explore --serve`: the page, and answers to its questions.

    GET  /?token=…   sets a cookie and leads to /, so that no link contains the token
    GET  /           the page
    POST /ask        a question in JSON, its answer in JSON

It listens on 127.0.0.1 only. A request needs the token, in the cookie or as a parameter, and this
server's own address as Host and, where a browser sends it, as Origin: another site that is open in
the same browser has neither.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import signal
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeVar
from urllib.parse import parse_qs

import waitress

from dbt_history.explore.answers import Answers, QuestionError
from dbt_history.explore.page import page
from dbt_history.explore.project import DbtProject, ExploreError

HOST = "127.0.0.1"
MAX_QUESTION = 64 * 1024
JSON = "application/json"
HEADERS = (
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
)
Result = TypeVar("Result")
Reply = tuple[str, str, list[tuple[str, str]]]


class Worker:
    """The thread that asks Spark, one question at a time: a connection of dbt belongs to a thread.

    After an error the connection is opened again.
    """

    def __init__(self, project: DbtProject) -> None:
        self.project = project
        self.threads = ThreadPoolExecutor(1, thread_name_prefix="explore")
        self.connection = ExitStack()

    def __call__(self, question: Callable[[], Result]) -> Result:
        return self.threads.submit(self._run, question).result()

    def _run(self, question: Callable[[], Result]) -> Result:
        adapter = self.project.adapter
        if adapter.connections.get_if_exists() is None:
            self.connection.enter_context(adapter.connection_named("dbt-history"))
        try:
            return question()
        except QuestionError:
            raise
        except Exception:
            self.connection.close()
            raise

    def close(self) -> None:
        self.threads.submit(self.connection.close)
        self.threads.shutdown(wait=True, cancel_futures=False)


class App:
    """The WSGI application."""

    def __init__(self, answers: Answers, worker: Worker) -> None:
        self.answers = answers
        self.worker = worker
        self.token = secrets.token_urlsafe(32)
        self.hosts: set[str] = set()
        self.cookie = "dbt_history"
        self.started = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")

    def listens_on(self, port: int) -> str:
        """The address to open in a browser."""
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        # Cookies do not tell ports apart.
        self.cookie = f"dbt_history_{port}"
        return f"http://{HOST}:{port}/?token={self.token}"

    def __call__(
        self, environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], Any]
    ) -> Iterable[bytes]:
        status, text, headers = self.reply(environ)
        body = text.encode()
        start(status, [*HEADERS, *headers, ("Content-Length", str(len(body)))])
        return [body]

    def reply(self, environ: Mapping[str, Any]) -> Reply:
        plain = [("Content-Type", "text/plain; charset=utf-8")]
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        given = parse_qs(environ.get("QUERY_STRING", "")).get("token", [""])[0]
        if environ.get("HTTP_HOST") not in self.hosts:
            return "403 Forbidden", "not the address of this server", plain
        if not self.is_token(given) and not self.is_token(self.cookie_of(environ)):
            return "403 Forbidden", "open the address that dbt-history explore printed", plain
        if path == "/" and method == "GET":
            if given:
                cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                return "303 See Other", "", [("Location", "/"), ("Set-Cookie", cookie), *plain]
            return self.page()
        if path == "/ask" and method == "POST":
            return self.ask(environ)
        return "404 Not Found", "there is no such page", plain

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def cookie_of(self, environ: Mapping[str, Any]) -> str:
        try:
            found = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found else ""

    def page(self) -> Reply:
        try:
            tables = self.worker(self.answers.about)
        except ExploreError as error:
            plain = [("Content-Type", "text/plain; charset=utf-8")]
            return "500 Internal Server Error", error.message, plain
        data = {
            "format": 1,
            "served": True,
            "project": self.answers.project.name,
            "made_at": self.started,
            "points": {"time": [], "number": []},
            "tables": tables,
        }
        return "200 OK", page(data), [("Content-Type", "text/html; charset=utf-8")]

    def ask(self, environ: Mapping[str, Any]) -> Reply:
        headers = [("Content-Type", JSON)]

        def refused(status: str, text: str) -> Reply:
            return status, json.dumps({"error": text}), headers

        origin = environ.get("HTTP_ORIGIN")
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return refused("403 Forbidden", "asked by another site")
        if environ.get("CONTENT_TYPE", "").partition(";")[0] != JSON:
            return refused("415 Unsupported Media Type", f"a question is {JSON}")
        try:
            question = json.loads(environ["wsgi.input"].read(MAX_QUESTION))
        except ValueError:
            return refused("400 Bad Request", "the question is not JSON")
        if not isinstance(question, dict):
            return refused("400 Bad Request", "the question is not an object")
        try:
            made = self.worker(lambda: self.answers.answer(question))
        except QuestionError as error:
            return refused("400 Bad Request", error.message)
        except ExploreError as error:
            return refused("500 Internal Server Error", error.message)
        return "200 OK", json.dumps(made, separators=(",", ":")), headers


def serve_tables(answers: Answers, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted or terminated; `ready` gets its address."""
    worker = Worker(answers.project)
    app = App(answers, worker)
    try:
        # A second request that waits for the first is no problem to report.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        server = waitress.create_server(
            app, host=HOST, port=port, threads=4, ident=None, max_request_body_size=MAX_QUESTION
        )
    except OSError as error:
        raise ExploreError(f"port {port} of {HOST} cannot be used: {error.strerror}") from None
    # Like Ctrl-C: waitress ends its loop, and the question that Spark is answering ends first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ready(app.listens_on(server.effective_port))
    try:
        server.run()
    finally:
        server.close()
        worker.close()
