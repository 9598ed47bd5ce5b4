"""Models in session mode with several threads; no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.support.rendering import Renderer

COMMIT = {"statement": "merge", "settings": {"spark.x": "1"}, "before": {}}


def answers(call: Renderer, own: str, **context: Any) -> list[str]:
    """A run with four threads; `own`: what the session says of itself."""
    call.context = {
        "model": {"unique_id": "model.shop.customers", "config": {"materialized": "history"}},
        "target": SimpleNamespace(threads=4),
        "execute": True,
        **context,
    }
    return call.pretend_answers({"set spark.dbt_history": [{"key": "", "value": own}], "begin": []})


def test_a_shared_session_is_refused_before_anything_is_written(call: Renderer) -> None:
    executed = answers(call, "<undefined>")
    for macro, arguments in (
        ("_guarded_statement", COMMIT),
        ("_full_refresh", {"existing": None, "settings": {}, "caller_name": "history"}),
    ):
        with pytest.raises(DbtRuntimeError) as refused:
            call(macro, **arguments)
        message = str(refused.value)
        assert "dbt_history.history: the threads of session mode share one" in message
        assert "got: threads: 4" in message
        assert "in model: model.shop.customers" in message
        assert "way out: dbt <command> --threads 1" in message
    assert {statement.split()[0] for statement in executed} == {"set"}


@pytest.mark.parametrize(
    ("own", "context"),
    [
        ("true", {}),
        ("<undefined>", {"target": SimpleNamespace(threads=1)}),
        ("<undefined>", {"model": {"unique_id": "macro.dbt_history.clean_history"}}),
    ],
    ids=["own sessions", "one thread", "run-operation"],
)
def test_a_session_that_is_not_shared_commits(
    call: Renderer, own: str, context: dict[str, Any]
) -> None:
    executed = answers(call, own, **context)
    call("_guarded_statement", **COMMIT)
    assert executed[-1].startswith("begin")
