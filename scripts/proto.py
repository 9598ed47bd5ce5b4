"""Generate `destination_pb2.py` and its type stubs from `destination.proto`.

scripts/proto.py [FOLDER]    default: the folder of the proto file
"""

from __future__ import annotations

import sys
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

SOURCE = Path(__file__).resolve().parent.parent / "src/dbt_history/serve/destination.proto"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


def make(folder: Path) -> None:
    """Write the two files into `folder`."""
    paths = [f"--proto_path={SOURCE.parent}", f"--proto_path={WELL_KNOWN}"]
    code = protoc.main(
        ["protoc", *paths, f"--python_out={folder}", f"--pyi_out={folder}", SOURCE.name]
    )
    if code:
        raise SystemExit(code)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE.parent)
