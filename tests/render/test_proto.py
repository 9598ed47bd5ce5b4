"""The generated gRPC messages are up to date, and every call is implemented."""

from __future__ import annotations

from pathlib import Path

from dbt_history.serve.service import SERVICE, Service, snake_case
from scripts.proto import SOURCE, make


def test_the_grpc_messages_are_generated_from_the_proto_file(tmp_path: Path) -> None:
    make(tmp_path)

    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"destination_pb2.py", "destination_pb2.pyi"}
    for path in tmp_path.iterdir():
        assert (SOURCE.parent / path.name).read_text() == path.read_text(), "run: make proto"


def test_every_call_of_the_contract_is_implemented() -> None:
    assert [m.name for m in SERVICE.methods if not hasattr(Service, snake_case(m.name))] == []
    assert len(SERVICE.methods) == 10
