"""Metrics of the destination in Prometheus' format. They contain no names of tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from wsgiref.simple_server import WSGIServer

import grpc
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    start_http_server,
)

from dbt_history.landing.errors import RefusedError

SECONDS = (0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)


@dataclass
class Metrics:
    """Counts and times calls. The process metrics include memory and open files."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        own = self.registry
        labels = ["call", "outcome"]
        self.calls = Counter("dbt_history_calls", "Finished calls", labels, registry=own)
        self.seconds = Histogram(
            "dbt_history_call_seconds",
            "Duration of calls",
            ["call"],
            buckets=SECONDS,
            registry=own,
        )
        self.running = Gauge(
            "dbt_history_calls_in_progress", "Running and waiting calls", registry=own
        )
        ProcessCollector(registry=self.registry)

    def measured(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, counted with its outcome: success, refused, or the code of its status."""

        def run(request: Any, context: grpc.ServicerContext) -> Any:
            began, outcome = time.monotonic(), "refused"
            self.running.inc()
            try:
                response = call(request, context)
                if not is_problem(response):
                    outcome = "success"
            except Exception:
                outcome = code.name.lower() if (code := context.code()) else "internal"
                raise
            finally:
                self.running.dec()
                self.calls.labels(name, outcome).inc()
                self.seconds.labels(name).observe(time.monotonic() - began)
            return response

        return run

    def serve(self, host: str, port: int) -> WSGIServer:
        """Answer at http://host:port/metrics. Raises RefusedError if the address is taken."""
        try:
            server, _ = start_http_server(port, host, self.registry)
        except OSError as error:
            raise RefusedError(
                f"metrics: {host}:{port} is not available to listen on: {error.strerror}"
            ) from None
        return server


def is_problem(response: Any) -> bool:
    """Whether the response is a task or a failure, or the call is unsupported."""
    if "response" not in response.DESCRIPTOR.oneofs_by_name:
        return False
    return response.WhichOneof("response") in ("task", "failure", "unsupported")
