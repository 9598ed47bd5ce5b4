"""Valid and refused content of the files of a request, without Spark."""

from __future__ import annotations

import base64
import io
import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.types import StructType

from dbt_history.landing import Limits, RefusedError, csv_cells, parse_request
from dbt_history.landing import read_request as read
from dbt_history.landing.command import find_requests
from dbt_history.landing.files import CHUNK, path_below
from dbt_history.landing.land import find_sources, read_each
from dbt_history.landing.parquet_cells import SealedFile, spooled
from dbt_history.landing.rows import FileReader, checked, staged_rows
from dbt_history.landing.writer import NULL, UNMODIFIED, RequestWriter, csv_text, parquet
from tests.support.landing import COLUMNS, END, HEADER, START, one_file, problems, small, upserts

# -- order -----------------------------------------------------------------------------------------


def test_requests_of_several_folders_are_in_the_order_of_their_paths(tmp_path: Path) -> None:
    names = [
        "day_5/request.json", "day_9/request_2.json", "day_9/request_10.json",
        "day_10/request.json", "day_10/request_02.json", "day_10/request_2.json",
    ]  # fmt: skip
    for name in reversed(names):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()

    assert find_requests((tmp_path / "*/*.json",)) == [tmp_path / name for name in names]
    assert find_requests((tmp_path / "day_9",)) == [tmp_path / name for name in names[1:3]]
    assert find_requests((tmp_path / "day_1?/r*.json", tmp_path / "day_5/request.json")) == [
        tmp_path / name for name in (*names[3:], names[0])
    ]


def test_files_in_the_order_of_a_shell_are_landed_by_their_numbers_and_others_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def order(*names: str) -> list[str]:
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        paths = find_requests(tuple(tmp_path / name for name in names))
        return [path.relative_to(tmp_path).as_posix() for path in paths]

    # requests/*.json, day_*/*.json and b/*.json a/*.json
    assert order("r/1.json", "r/10.json", "r/2.json") == ["r/1.json", "r/2.json", "r/10.json"]
    assert order("day_10/r.json", "day_9/r.json") == ["day_9/r.json", "day_10/r.json"]
    assert order("b/10.json", "b/2.json", "a/10.json", "a/2.json") == [
        "b/2.json", "b/10.json", "a/2.json", "a/10.json",
    ]  # fmt: skip
    for given in (["r/10.json", "r/2.json", "r/1.json"], ["b/2.json", "r/1.json", "a/2.json"]):
        assert order(*given) == given
    # In the order of a shell, and without numbers of different lengths.
    for given in (["r/request.json", "r/request1.json"], ["old-1/r.json", "old/r.json"]):
        assert order(*given) == given
    # As in a locale: letters first, then small before capital ones.
    monkeypatch.setattr("locale.strxfrm", lambda text: f"{text.lower()}\0{text.swapcase()}")
    assert order("r/a10.json", "r/A2.json") == ["r/A2.json", "r/a10.json"]
    for given in (
        ["r/a.json", "r/B.json"],
        ["archive/1.json", "archive/2.json", "Delta/1.json"],
        ["r/Update_1.json", "r/update_2.json"],
    ):
        assert order(*given) == given


# -- refusals --------------------------------------------------------------------------------------


def test_a_valid_request_has_no_problems(tmp_path: Path) -> None:
    assert problems(small(tmp_path).write()) == ""


@pytest.mark.parametrize("name", ["../out.csv", "a/../../out.csv", "/etc/passwd", ".."])
def test_a_path_outside_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    writer = small(folder)
    (tmp_path / "out.csv").write_bytes((folder / "upsert.csv").read_bytes())
    writer.files["replace_files"].append(name)

    assert f"{name}: is outside the folder of the request" in problems(writer.write())


def test_an_absolute_path_inside_the_folder_is_accepted(tmp_path: Path) -> None:
    writer = small(tmp_path)
    writer.files["replace_files"] = [str(tmp_path / "upsert.csv")]

    assert problems(writer.write()) == ""


@pytest.mark.parametrize("named", ["linked", "real"])
def test_an_absolute_path_below_a_linked_folder_may_have_the_link_or_the_real_path(
    named: str, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")

    assert path_below(tmp_path / "linked", str(tmp_path / named / "u.csv")) == "u.csv"


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_symbolic_link_anywhere_in_the_path_is_refused(is_folder: bool, tmp_path: Path) -> None:
    writer = small(tmp_path / "r")
    real = tmp_path / "elsewhere"
    real.mkdir()
    (tmp_path / "r/upsert.csv").rename(real / "upsert.csv")
    if is_folder:
        (tmp_path / "r/sub").symlink_to(real)
        writer.files["replace_files"] = ["sub/upsert.csv"]
    else:
        (tmp_path / "r/upsert.csv").symlink_to(real / "upsert.csv")

    assert "is a symbolic link or below one" in problems(writer.write())


def test_a_path_with_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    writer = small(tmp_path)
    writer.files["replace_files"] += ["a" * 300]

    assert "aaa: cannot be opened: File name too long" in problems(writer.write())


def test_a_path_that_is_no_regular_file_is_refused_without_blocking(tmp_path: Path) -> None:
    writer = small(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    writer.files["replace_files"] += ["pipe", "folder", "missing"]

    found = problems(writer.write())

    assert "pipe: is not a regular file" in found
    assert "folder: is not a regular file" in found
    assert "missing: does not exist" in found


@pytest.mark.parametrize("compression", ["ZSTD", "GZIP"])
def test_a_decompression_bomb_is_refused_before_it_expands(
    compression: str, tmp_path: Path
) -> None:
    data = csv_text(HEADER, upserts(("1", "a", "1"))) + b"2," + b"x" * (100 << 20)
    path = one_file(tmp_path, data, compression=compression)

    assert "expands to more than 100 times its size" in problems(path, Limits(ratio=100))
    assert "expands to more than 5,000,000 bytes" in problems(path, Limits(expanded=5_000_000))


@pytest.mark.parametrize("compression", ["OFF", "ZSTD", "GZIP"])
def test_a_wrong_key_is_refused(compression: str, tmp_path: Path) -> None:
    for seed in range(20):
        writer = small(tmp_path, compression=compression, is_encrypted=True)
        writer.keys["upsert.csv"] = random.Random(seed).randbytes(32)
        assert "wrong key" in problems(writer.write())


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.parametrize("compression", ["ZSTD", "GZIP"])
def test_a_truncated_file_is_refused_at_any_length(
    compression: str, is_encrypted: bool, tmp_path: Path
) -> None:
    writer = small(tmp_path, compression=compression, is_encrypted=is_encrypted)
    path = writer.write()
    whole = (tmp_path / "upsert.csv").read_bytes()
    for length in range(0, len(whole), 7):
        (tmp_path / "upsert.csv").write_bytes(whole[:length])
        assert problems(path), length


def test_the_last_row_of_a_plain_csv_file_may_lack_its_line_break(tmp_path: Path) -> None:
    data = csv_text(["name", "id", "_fivetran_start"], [["a", "1", START], ["b", "2", START]])
    path = one_file(tmp_path, data.removesuffix(b"\n"), "update")
    source = find_sources(read(path), tmp_path, Limits())[0]

    rows = [row for batch in staged_rows(source) for row in batch.to_pylist()]

    assert [(row["id"], row["name"]) for row in rows] == [(1, "a"), (2, "b")]
    assert rows[0]["_fivetran_start"] == rows[1]["_fivetran_start"]


def test_a_file_that_changes_between_check_and_read_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path).write()
    source = find_sources(read(path), tmp_path, Limits())[0]
    file = tmp_path / "upsert.csv"
    file.write_bytes(file.read_bytes().replace(b"1,a", b"2,a"))

    with pytest.raises(RefusedError):
        list(staged_rows(source))
    assert "changed while it was being landed" in str(checked(source).problems[0])


def test_a_header_with_unknown_duplicate_or_missing_columns_is_refused(tmp_path: Path) -> None:
    found = problems(one_file(tmp_path, b"id,id,nme,_fivetran_start,_fivetran_active\n"))

    assert "rows.csv, line 1, column 'id': occurs twice in the header" in found
    assert "rows.csv, line 1, column 'nme': is not a column of the table" in found
    assert "column _fivetran_end: is missing in the header of a file of upsert rows" in found


@pytest.mark.parametrize(
    ("stage", "header", "row", "reason"),
    [
        ("upsert", HEADER, ["1", UNMODIFIED, "1", START, END, "true"],
         "column name: is the unmodified marker, not allowed in upsert rows"),
        ("update", ["id", "_fivetran_start"], [UNMODIFIED, START],
         "column id: is the unmodified marker, not allowed in update rows"),
        ("update", ["id", "_fivetran_start"], ["1", UNMODIFIED],
         "column _fivetran_start: is the unmodified marker"),
        ("update", ["id", "_fivetran_start"], [NULL, START], "column id: must not be NULL"),
        ("delete", ["id", "_fivetran_end"], ["1", NULL],
         "column _fivetran_end: must not be NULL"),
    ],
)  # fmt: skip
def test_a_marker_in_a_place_that_does_not_allow_it_is_refused(
    stage: str, header: list[str], row: list[str], reason: str, tmp_path: Path
) -> None:
    writer = RequestWriter(tmp_path, COLUMNS)
    writer.add_csv(stage, "f.csv", header, [row])

    assert f"f.csv, line 2, {reason}" in problems(writer.write())


OPEN = "is not before the open end, 9999-12-31T23:59:59.999Z"
EARLY = "is more than one millisecond before _fivetran_start"


@pytest.mark.parametrize(
    ("stage", "start", "end", "reason"),
    [
        ("upsert", START, "2023-12-31T23:59:59.998Z", f"column _fivetran_end: {EARLY}"),
        ("update", START, "2023-12-31T23:59:59.998999Z", f"column _fivetran_end: {EARLY}"),
        ("upsert", END, END, f"column _fivetran_start: {OPEN}"),
        ("update", "9999-12-31T23:59:59.999999Z", END, f"column _fivetran_start: {OPEN}"),
        ("earliest_start", END, None, f"column _fivetran_start: {OPEN}"),
        # An empty period, no end, and rows of which only the end counts.
        ("upsert", START, "2023-12-31T23:59:59.999Z", ""),
        ("update", START, UNMODIFIED, ""),
        ("upsert", START, NULL, ""),
        ("delete", END, START, ""),
    ],
)
@pytest.mark.parametrize("form", ["CSV", "PARQUET"])
def test_a_period_that_the_history_refuses_is_not_landed(
    form: str, stage: str, start: str, end: str | None, reason: str, tmp_path: Path
) -> None:
    header = ["id", "_fivetran_start", *(["_fivetran_end", "_fivetran_active"] if end else [])]
    valid = ["1", START, END, "true"][: len(header)]
    rows = [valid, [*("1", start, end or "")[: len(header)], "true"][: len(header)]]
    writer = RequestWriter(tmp_path, COLUMNS)
    writer.add(stage, "f", csv_text(header, rows) if form == "CSV" else parquet(header, rows))
    line = 3 if form == "CSV" else 2

    assert problems(writer.write()) == (f"f, line {line}, {reason}" if reason else "")


def test_a_cell_of_10_mb_is_landed_and_one_over_the_limit_is_refused(
    tmp_path: Path,
) -> None:
    cell = 'line "quoted"\n' * 700_000
    data = csv_text(HEADER, upserts(("1", "a", "1"), ("2", cell, "2"), ("3", "c", "3")))
    path = one_file(tmp_path, data, compression="ZSTD")
    source = find_sources(read(path), tmp_path, Limits())[0]

    names = [name for batch in staged_rows(source) for name in batch["name"].to_pylist()]

    assert names == ["a", cell, "c"]
    found = problems(path, Limits(cell=9_000_000))
    assert found == "rows.csv, line 3, column name: is longer than 9,000,000 bytes"
    assert "line 3: a row is longer than 5,000,000 bytes" in problems(path, Limits(row=5_000_000))


def test_a_byte_order_mark_is_removed_from_the_start_of_a_file_only(tmp_path: Path) -> None:
    """U+FEFF is the first character of every row, and so of every part that is parsed."""
    columns = {"name": "STRING", "id": "LONG"}
    mark, long = "\ufeff", "x" * (CHUNK // 2)
    rows = [[mark + long, str(number), START] for number in range(8)]
    data = csv_text(["name", "id", "_fivetran_start"], rows)
    path = one_file(tmp_path, mark.encode() + data, "update", columns=columns)
    source = find_sources(read(path), tmp_path, Limits())[0]

    batches = list(staged_rows(source))

    assert len(batches) > 1
    names = [name for batch in batches for name in batch["name"].to_pylist()]
    assert [name.removesuffix(long) for name in names] == [mark] * 8


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (b"1,\xff\xfe,1", "rows.csv, line 2, column name: is not UTF-8"),
        (b'1,"a\nb",1\n2,\xc3(,1', "rows.csv, line 4, column name: is not UTF-8"),
        (b"1,a", "rows.csv, line 2: the row has 2 cells, the header 6"),
        (b'1,"a,1', "line 2: a quote is not closed"),
        (b'1,a"b"c,1', "line 2 has a quote inside a cell"),
        (b'1,"a"b,1', "line 2 has a quote inside a cell"),
        (b'1,"say \\"hi\\"",1', "line 2 has a quote inside a cell"),
    ],
)
def test_malformed_csv_is_refused_with_its_line(rows: bytes, reason: str, tmp_path: Path) -> None:
    end = f",{START},{END},true".encode()
    lines = [line + end if b",1" in line else line for line in rows.split(b"\n")]
    head = ",".join(HEADER).encode()

    assert reason in problems(one_file(tmp_path, head + b"\n" + b"\n".join(lines) + b"\n"))


@pytest.mark.parametrize(
    ("type_", "cells"),
    [
        ("BOOLEAN", ["1", "yes", ""]),
        ("SHORT", ["32768", "1.0", "0x1F", " 1"]),
        ("INT", ["2147483648", "1e3"]),
        ("LONG", ["9223372036854775808", "--1"]),
        (("DECIMAL", 5, 2), ["1.234", "1000", "NaN", ""]),
        (("DECIMAL", 38, 0), [str(2**128 + 1), f"-{2**128 + 1}", f"{2**128 * 10}e-1", "2e99"]),
        (("DECIMAL", 38, 10), [f"{2**128}.5", "34028236692093846346337460744", "8e35"]),
        ("FLOAT", ["1e39", "abc"]),
        ("DOUBLE", ["1e309", "0x1p3"]),
        ("NAIVE_DATE", ["2023-02-29", "20240101", "0000-01-01"]),
        ("NAIVE_TIME", ["24:00:00", "1:2"]),
        ("NAIVE_DATETIME", ["2024-01-01", "2024-01-01T00:00:00Z"]),
        ("UTC_DATETIME", ["2024-13-01T00:00:00Z", "2024-01-01T25:00Z", "+12024-01-01T00:00:00Z"]),
        ("UTC_DATETIME", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:30:00-01:00"]),
        ("BINARY", ["a", "dGVzdA", "a b="]),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(
    type_: Any, cells: list[str], tmp_path: Path
) -> None:
    writer = RequestWriter(tmp_path, {"id": "INT", "v": type_})
    rows = [["1", cell, START] for cell in cells]
    writer.add_csv("update", "f.csv", ["id", "v", "_fivetran_start"], rows)

    found = problems(writer.write()).splitlines()

    assert [line.split(":")[0] for line in found] == [
        f"f.csv, line {line}, column v" for line in range(2, 2 + len(cells))
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(nonsense=1), "unknown field nonsense"),
        (lambda d: d["fileParams"].update(compression="LZ4"), "compression is 'LZ4'"),
        (lambda d: d["fileParams"].update(unmodifiedString=NULL), "are the same text"),
        (
            lambda d: d["table"]["columns"].append({"name": "ID", "type": "INT"}),
            "is listed twice",
        ),
        (
            lambda d: d["table"]["columns"].append({"name": "_batch", "type": "INT"}),
            "is reserved",
        ),
        (lambda d: d["table"]["columns"].append({"name": "x"}), "column x has an unknown type"),
        (lambda d: [c.pop("primaryKey", 0) for c in d["table"]["columns"]], "as primary_key"),
        (lambda d: d["keys"].update({"upsert.csv": "c2hvcnQ="}), "is not 32 bytes in base64"),
        (lambda d: d["keys"].clear(), "upsert.csv: has no key in keys"),
        (lambda d: d.update(updateFiles=["upsert.csv"]), "the request names it twice"),
        (lambda d: d.update(deleteFiles="x"), "delete_files is not a list"),
        (lambda d: d.update(update_files=["a"], updateFiles=[]), "update_files occurs in two spel"),
        (lambda d: d["table"].update(key=["id"]), "unknown field table.key"),
        (lambda d: d["fileParams"].update(nullText="x"), "unknown field file_params.nullText"),
        (
            lambda d: d["fileParams"].update(null_string=NULL),
            "file_params.null_string occurs in two spellings",
        ),
        (lambda d: d["table"]["columns"][0].update(primarykey=True), "unknown field primarykey"),
        (
            lambda d: d["table"]["columns"][0].update(primaryKey="true"),
            "column id: primary_key is 'true', not true or false",
        ),
        (
            lambda d: d["table"]["columns"][0].update(primary_key=True),
            "column id: primary_key occurs in two spellings",
        ),
        (
            lambda d: d["table"]["columns"][2].update(params={"Decimal": {"precision": 5}}),
            "column amount: unknown field params.Decimal",
        ),
        (
            lambda d: d["table"]["columns"][2]["params"]["decimal"].update(Scale=2),
            "column amount: unknown field decimal.Scale",
        ),
        (lambda d: d["table"]["columns"][1].update(params=5), "params is not an object"),
    ],
)
def test_an_invalid_request_is_refused(
    change: Callable[[dict[str, Any]], Any], reason: str, tmp_path: Path
) -> None:
    document = small(tmp_path, is_encrypted=True).document()
    parse_request(document, "before")
    change(document)

    with pytest.raises(RefusedError) as refused:
        parse_request(document, "request.json")

    assert reason in str(refused.value)


@pytest.mark.parametrize("is_longer", [True, False])
def test_a_file_that_grows_or_shrinks_while_it_is_read_is_refused(
    is_longer: bool, tmp_path: Path
) -> None:
    rows = upserts(*((str(n), "x" * 1000, "1") for n in range(5_000)))
    path = one_file(tmp_path, csv_text(HEADER, rows))
    source = find_sources(read(path), tmp_path, Limits())[0]
    file = tmp_path / "rows.csv"
    reading = FileReader(source)
    batches = reading.batches()
    next(batches)
    if is_longer:
        with file.open("ab") as stream:
            stream.write(csv_text(HEADER, upserts(("9", "b", "2"))).split(b"\n", 1)[1])
    else:
        data = file.read_bytes()
        os.truncate(file, data.rindex(b"\n", 0, len(data) - 1) + 1)
    for _ in batches:
        pass

    assert [str(problem) for problem in reading.problems] == [
        "rows.csv: changed while it was being landed"
    ]


# -- values ----------------------------------------------------------------------------------------

SHARED: dict[str, Callable[[random.Random], tuple[Any, str]]] = {
    "BOOLEAN": lambda r: (v := r.random() < 0.5, str(v).lower()),
    "SHORT": lambda r: (v := r.randint(-(2**15), 2**15 - 1), str(v)),
    "INT": lambda r: (v := r.randint(-(2**31), 2**31 - 1), str(v)),
    "LONG": lambda r: (v := r.randint(-(2**63), 2**63 - 1), str(v)),
    "FLOAT": lambda r: (v := float(np.float32(r.uniform(-1e9, 1e9))), repr(v)),
    "DOUBLE": lambda r: (v := r.uniform(-1e9, 1e9), repr(v)),
    "NAIVE_TIME": lambda r: (v := f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:07.5", v),
    "NAIVE_DATE": lambda r: (v := date(1, 1, 1) + timedelta(r.randint(0, 3_652_000)), str(v)),
    "BINARY": lambda r: (v := r.randbytes(r.randint(0, 9)), base64.b64encode(v).decode()),
}


def random_value(r: random.Random, type_: Any) -> tuple[Any, str]:
    """A value, and its text in a file."""
    if type_ in SHARED:
        value, text = SHARED[type_](r)
        return value, text
    if isinstance(type_, tuple):
        value = Decimal(r.randint(-(10 ** type_[1]) + 1, 10 ** type_[1] - 1)).scaleb(-type_[2])
        return value, format(value, r.choice("fE"))
    if type_ in ("UTC_DATETIME", "NAIVE_DATETIME"):
        value = datetime(1, 1, 1) + timedelta(
            r.randint(0, 3_652_000), microseconds=r.randint(0, 86_399_999_999)
        )
        text = value.isoformat(timespec="microseconds") + r.choice(["", "0", "999"])
        is_utc = type_ == "UTC_DATETIME"
        return value.replace(tzinfo=UTC) if is_utc else value, text + ("Z" if is_utc else "")
    text = "".join(r.choice("a\",\n\r\\'日👍 \0;") for _ in range(r.randint(0, 12)))
    return text, text


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_in_random_encodings_are_read_back_unchanged(
    seed: int, tmp_path: Path
) -> None:
    r = random.Random(seed)
    known: list[Any] = [
        *SHARED,
        "UTC_DATETIME",
        "NAIVE_DATETIME",
        "STRING",
        "JSON",
        "XML",
        ("DECIMAL", 38, 9),
    ]
    columns = {f"c {n}": r.choice(known) for n in range(r.randint(1, 6))}
    writer = RequestWriter(
        tmp_path, {"id": "INT", **columns}, compression=r.choice(["OFF", "ZSTD", "GZIP"]),
        is_encrypted=r.random() < 0.5,
    )  # fmt: skip
    header = r.sample(["id", "_fivetran_start", *columns], len(columns) + 2)
    expected, rows = [], []
    for number in range(r.choice([0, 1, 50, 3000])):
        values: dict[str, Any] = {"id": number}
        cells, kept = {"id": str(number), "_fivetran_start": START}, set()
        for name, type_ in columns.items():
            kind = r.random()
            values[name], cells[name] = (
                (None, NULL) if kind < 0.1 else (None, UNMODIFIED) if kind < 0.3
                else random_value(r, type_)
            )  # fmt: skip
            kept |= {name} if cells[name] == UNMODIFIED else set()
        expected.append((values, kept | {"_fivetran_end", "_fivetran_active"}))
        rows.append([cells[name] for name in header])
    write = r.choice([csv_text, parquet])
    writer.add("update", "f", write(header, rows))
    request = read(writer.write())
    source = find_sources(request, tmp_path, Limits())[0]

    assert [str(problem) for problem in checked(source).problems] == []
    found = [row for batch in staged_rows(source) for row in batch.to_pylist()]

    got = [({n: row[n] for n in ("id", *columns)}, set(row["_unmodified"])) for row in found]
    assert got == expected


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_rows_are_split_correctly_at_any_chunk_size(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ['a\n"b', "", '"', "\r\n", "x,y", '\n\n""\n', "日本"] * 3
    data = csv_text(HEADER, upserts(*((str(n), name, "1") for n, name in enumerate(names))))
    path = one_file(tmp_path, data.rstrip(b"\n"))
    monkeypatch.setattr("dbt_history.landing.csv_cells.CHUNK", chunk)
    source = find_sources(read(path), tmp_path, Limits())[0]

    found = [name for batch in staged_rows(source) for name in batch["name"].to_pylist()]

    assert found == names


def test_parquet_columns_may_be_native_or_text(tmp_path: Path) -> None:
    columns = {
        "id": "LONG",
        "d": ("DECIMAL", 10, 2),
        "t": "UTC_DATETIME",
        "s": "STRING",
        "b": "BINARY",
    }
    cells = pa.table(
        {
            "s": pa.array([UNMODIFIED, NULL, None]),
            "id": pa.array([1, 2, 3], pa.int32()),
            "d": pa.array([Decimal("1.50"), None, Decimal("-2")]),
            "t": pa.array([1_600_000_000_123_456_789, None, 0], pa.timestamp("ns", "UTC")),
            "b": pa.array([b"\0", None, b""]),
            "_fivetran_start": pa.array([START] * 3),
        }
    )
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(cells, sink, row_group_size=2)
    path = one_file(
        tmp_path,
        sink.getvalue().to_pybytes(),
        "update",
        columns=columns,
        compression="ZSTD",
        is_encrypted=True,
    )
    source = find_sources(read(path), tmp_path, Limits())[0]

    assert [str(problem) for problem in checked(source).problems] == []
    found = [row for batch in staged_rows(source) for row in batch.to_pylist()]

    assert [row["d"] for row in found] == [Decimal("1.50"), None, Decimal("-2.00")]
    assert found[0]["t"] == datetime(2020, 9, 13, 12, 26, 40, 123456, UTC)
    assert [row["b"] for row in found] == [b"\0", None, b""]
    assert ["s" in row["_unmodified"] for row in found] == [True, False, False]
    assert [row["_order"] % 10 for row in found] == [1, 2, 3]


@pytest.mark.parametrize("arrow", [pa.string(), pa.json_(pa.large_string())], ids=str)
def test_a_parquet_file_of_few_bytes_and_long_repeated_cells_is_read_in_small_parts(
    arrow: pa.DataType, tmp_path: Path
) -> None:
    cell = "x" * (1 << 20)
    texts = pa.array([cell] * 300, arrow)
    cells = {"id": range(300), "s": texts, "_fivetran_start": [START] * 300}
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(cells), sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    path = one_file(tmp_path, data, "update", columns={"id": "INT", "s": "STRING"})
    source = find_sources(read(path), tmp_path, Limits(ratio=1_000_000))[0]

    sizes = [batch.nbytes for batch in staged_rows(source)]

    assert len(data) < 100_000
    assert sum(sizes) > 300 << 20
    assert max(sizes) < 16 << 20
    assert "rows.csv: expands to more than" in problems(path)
    assert "column s: is longer than 1,000 bytes" in problems(
        path, Limits(cell=1000, ratio=1_000_000)
    )


def test_the_copy_of_a_parquet_file_on_disk_is_encrypted() -> None:
    r = random.Random(1)
    plain = b"PAR1" + r.randbytes(70_000) + b"a repeated text " * 9_000 + b"PAR1"

    with spooled(io.BytesIO(plain)) as file:
        assert isinstance(file, SealedFile)
        at = [0, len(plain) - 4, *(r.randrange(len(plain)) for _ in range(300))]
        for start in at:
            size = r.choice([1, 15, 16, 17, 5_000])
            assert file.seek(start) == file.tell() == start
            assert file.read(size) == plain[start : start + size]
        assert file.seek(0, io.SEEK_END) == len(plain)
        file.disk.seek(0)
        stored = file.disk.read()

    assert file.closed
    assert len(stored) == len(plain)
    assert b"PAR1" not in stored
    assert b"repeated" not in stored
    blocks = {stored[place : place + 16] for place in range(0, len(stored) - 16, 16)}
    assert len(blocks) == len(stored) // 16


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "_fivetran_start": [START] * 2}), sink)
    data = sink.getvalue().to_pybytes()
    for length in (5, 50, len(data) - 1):
        path = one_file(tmp_path, data[:length], "update", columns={"id": "INT"})
        assert "is damaged or not a complete" in problems(path)


def parquet_bytes(cells: dict[str, Any], **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table(cells), sink, **how)
    return bytes(sink.getvalue().to_pybytes())


def parquet_cells(folder: Path, type_: Any, cells: pa.Array, **how: Any) -> list[Any]:
    """The values of a column `v` of update rows; for refused values, the reason."""
    start = pa.array([START] * len(cells))
    data = parquet_bytes({"id": range(len(cells)), "v": cells, "_fivetran_start": start}, **how)
    path = one_file(folder, data, "update", columns={"id": "LONG", "v": type_})
    source = find_sources(read(path), folder, Limits())[0]
    reading = FileReader(source)
    rows = [row for batch in reading.batches() for row in batch.to_pylist()]
    if reading.problems:
        assert {problem.column for problem in reading.problems} == {"v"}
        return [str(problem.text) for problem in reading.problems]
    return ["unmodified" if "v" in row["_unmodified"] else row["v"] for row in rows]


def test_a_damaged_page_of_a_parquet_file_is_refused_by_its_checksum(tmp_path: Path) -> None:
    cells = {"id": range(1000), "_fivetran_start": [START] * 1000}
    data = bytearray(parquet_bytes(cells, write_page_checksum=True, compression="none"))
    data[2000] ^= 1
    path = one_file(tmp_path, bytes(data), "update", columns={"id": "LONG"})

    assert "rows.csv: is damaged or not a complete Parquet file" in problems(path)


def test_a_parquet_file_with_any_bit_of_its_footer_or_index_flipped_is_read_or_refused(
    tmp_path: Path,
) -> None:
    cells = {"id": range(90), "name": ["a", "b", "c"] * 30, "_fivetran_start": [START] * 90}
    data = parquet_bytes(cells, write_page_index=True)
    path = one_file(tmp_path, data, "update", columns={"id": "LONG", "name": "STRING"})
    source = find_sources(read(path), tmp_path, Limits())[0]
    source = replace(source, file=replace(source.file, digest=""))
    for place in range(4, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        (tmp_path / "rows.csv").write_bytes(damaged)
        reading = checked(source)
        assert reading.problems or reading.rows == 90, place


def test_parquet_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    offsets, text = pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")
    bad = pa.StringArray.from_buffers(1, offsets, text)
    cells = {"id": [1], "name": bad, "_fivetran_start": [START]}
    path = one_file(tmp_path, parquet_bytes(cells), "update", columns={"id": "INT", "name": "JSON"})

    assert "rows.csv: is damaged" in problems(path)


@pytest.mark.parametrize(
    ("type_", "cells", "expected"),
    [
        ("BINARY", [b"\0", NULL.encode(), UNMODIFIED.encode(), None],
         [b"\0", None, "unmodified", None]),
        ("STRING", [b"a", NULL.encode(), UNMODIFIED.encode(), b""], ["a", None, "unmodified", ""]),
        ("INT", [b"7", NULL.encode(), UNMODIFIED.encode(), None], [7, None, "unmodified", None]),
        ("STRING", [b"a", b"\xff"], ["\"b'\\\\xff'\" is not a valid STRING"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_large", [False, True])
def test_markers_are_recognised_in_byte_columns_of_a_parquet_file(
    type_: str, cells: list[bytes], expected: list[Any], is_large: bool, tmp_path: Path
) -> None:
    array = pa.array(cells, pa.large_binary() if is_large else pa.binary())

    assert parquet_cells(tmp_path, type_, array) == expected


@pytest.mark.parametrize(
    "arrow",
    [
        pa.json_(pa.string()), pa.json_(pa.large_string()), pa.json_(pa.string_view()),
        pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("is_named", [True, False])
def test_markers_and_limits_apply_to_every_text_column_of_a_parquet_file(
    arrow: pa.DataType, is_named: bool, tmp_path: Path
) -> None:
    """`is_named`: the file also has Arrow's own type."""
    texts = pa.array(["{}", NULL, UNMODIFIED, None, "x" * 2000])
    if pa.types.is_dictionary(arrow):
        cells = texts.dictionary_encode().cast(arrow)
    elif isinstance(arrow, pa.ExtensionType):
        cells = pa.ExtensionArray.from_storage(arrow, texts.cast(arrow.storage_type))
    else:
        cells = texts.cast(arrow)

    found = parquet_cells(tmp_path, "JSON", cells, store_schema=is_named)

    assert found == ["{}", None, "unmodified", None, "x" * 2000]
    path = tmp_path / "request.json"
    assert "line 5, column v: is longer than 1,000 bytes" in problems(path, Limits(cell=1000))


@pytest.mark.parametrize("arrow", [pa.binary_view(), pa.large_binary()], ids=str)
def test_markers_and_limits_apply_to_every_byte_column_of_a_parquet_file(
    arrow: pa.DataType, tmp_path: Path
) -> None:
    cells = pa.array([b"\0", NULL.encode(), UNMODIFIED.encode(), b"x" * 2000], arrow)

    assert parquet_cells(tmp_path, "BINARY", cells)[:3] == [b"\0", None, "unmodified"]
    path = tmp_path / "request.json"
    assert "column v: is longer than 1,000 bytes" in problems(path, Limits(cell=1000))


def test_the_unmodified_marker_in_a_byte_column_of_upsert_rows_is_refused(tmp_path: Path) -> None:
    cells = {"id": [1], "b": [UNMODIFIED.encode()], "_fivetran_start": [START]}
    cells |= {"_fivetran_end": [END], "_fivetran_active": ["true"]}
    path = one_file(tmp_path, parquet_bytes(cells), columns={"id": "INT", "b": "BINARY"})

    assert "column b: is the unmodified marker, not allowed in upsert rows" in problems(path)


@pytest.mark.parametrize(
    ("type_", "taken", "refused"),
    [
        (("DECIMAL", 5, 2), [1.5, 0.1, -999.99, None],
         [1.239, 1000.0, float("nan"), float("inf")]),
        (("DECIMAL", 38, 20), [0.1], [1e19]),
        ("FLOAT", [0.5, float("inf"), None, 16777216.0], [1e39, -1e300]),
        ("LONG", [1.0, None], [1.5, 1e30]),
        ("BOOLEAN", [], [1.0]),
        ("UTC_DATETIME", [], [1.0]),
    ],
)  # fmt: skip
def test_a_double_of_a_parquet_file_is_refused_where_csv_refuses_its_text(
    type_: Any, taken: list[float], refused: list[float], tmp_path: Path
) -> None:
    doubles = pa.array([*taken, *refused], pa.float64())
    found = parquet_cells(tmp_path, type_, doubles)

    named = type_ if isinstance(type_, str) else f"DECIMAL({type_[1]}, {type_[2]})"
    assert found == [f"{str(value)!r} is not a valid {named}" for value in refused]
    if taken:
        values = parquet_cells(tmp_path, type_, pa.array(taken, pa.float64()))
        assert values == [
            Decimal(str(value)) if isinstance(type_, tuple) and value is not None else value
            for value in taken
        ]


@pytest.mark.parametrize(
    ("type_", "arrow"),
    [
        ("UTC_DATETIME", pa.timestamp("us", "UTC")),
        ("UTC_DATETIME", pa.timestamp("s", "Asia/Tokyo")),
        ("NAIVE_DATETIME", pa.timestamp("ms")),
        ("NAIVE_DATETIME", pa.date32()),
        ("NAIVE_DATE", pa.date32()),
        ("NAIVE_DATE", pa.timestamp("us")),
    ],
)
def test_times_outside_the_years_1_to_9999_are_refused_in_parquet(
    type_: str, arrow: pa.DataType, tmp_path: Path
) -> None:
    days = [-719163, -719162, 2932896, 2932897]
    midnights = [pa.array([day], pa.int32()).cast(pa.date32()).cast(arrow) for day in days]
    found = [parquet_cells(tmp_path, type_, cells)[0] for cells in midnights]

    assert [value.year for value in found[1:3]] == [1, 9999]
    assert all(found[place].endswith(f" is not a valid {type_}") for place in (0, 3)), found


def test_a_native_value_of_another_type_or_with_a_time_of_day_is_refused(tmp_path: Path) -> None:
    noon = pa.array([datetime(2024, 1, 1, 12)], pa.timestamp("us"))

    assert parquet_cells(tmp_path, "NAIVE_DATE", noon) == [
        "'2024-01-01 12:00:00' is not a valid NAIVE_DATE"
    ]
    for type_, cells in (
        ("UTC_DATETIME", pa.array([5])),
        ("LONG", noon),
        ("BOOLEAN", pa.array([5])),
        ("INT", pa.array([True])),
        ("STRING", pa.array([[1]])),
    ):
        assert parquet_cells(tmp_path, type_, cells)[0].endswith(f" is not a valid {type_}")


@pytest.mark.parametrize("arrow", [pa.int64(), pa.int32(), pa.uint64()], ids=str)
def test_an_integer_of_a_parquet_file_is_taken_for_a_decimal_that_holds_it(
    arrow: pa.DataType, tmp_path: Path
) -> None:
    taken = pa.array([7, 0, None, 999], arrow)
    assert parquet_cells(tmp_path, ("DECIMAL", 5, 2), taken) == [
        Decimal(7), Decimal(0), None, Decimal(999),
    ]  # fmt: skip
    refused = pa.array([1000], arrow)
    assert parquet_cells(tmp_path, ("DECIMAL", 5, 2), refused) == [
        "'1000' is not a valid DECIMAL(5, 2)"
    ]


@pytest.mark.parametrize("arrow", [pa.decimal128(38, 0), pa.decimal256(76, 0)], ids=str)
def test_a_decimal_of_a_parquet_file_is_refused_where_it_does_not_fit(
    arrow: pa.DataType, tmp_path: Path
) -> None:
    taken = [Decimal(10**28 - 1), Decimal(-7), None]
    found = parquet_cells(tmp_path, ("DECIMAL", 38, 10), pa.array(taken, arrow))
    assert found == taken
    # Each is another decimal modulo 2^128 after it is multiplied by 10^10.
    refused = [9802955382107123939006949581669, -34028236692093846346337460744]
    cells = pa.array(map(Decimal, refused), arrow)
    assert parquet_cells(tmp_path, ("DECIMAL", 38, 10), cells) == [
        f"'{number}' is not a valid DECIMAL(38, 10)" for number in refused
    ]
    wide = pa.array([Decimal(10**60)], pa.decimal256(76, 0))
    (found,) = parquet_cells(tmp_path, "FLOAT", wide)
    assert found.endswith(" is not a valid FLOAT")


@pytest.mark.parametrize(
    "arrow", [pa.decimal256(76, 38), pa.decimal256(76, 66), pa.decimal256(50, 40)], ids=str
)
def test_a_decimal_of_a_parquet_file_with_many_decimal_places_is_taken_if_it_fits(
    arrow: pa.DataType, tmp_path: Path
) -> None:
    texts = ["12.5", "-7", "0", "9876543210", "100.0100000001", "-0.0000000001", "1E-7"]
    taken = [None, *map(Decimal, texts)]
    assert parquet_cells(tmp_path, ("DECIMAL", 38, 10), pa.array(taken, arrow)) == taken

    more = pa.array([Decimal("0.00000000001"), Decimal("12.50000000001")], arrow)
    found = parquet_cells(tmp_path, ("DECIMAL", 38, 10), more)
    assert all(text.endswith(" is not a valid DECIMAL(38, 10)") for text in found), found


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE"])
def test_a_decimal_of_a_parquet_file_becomes_the_nearest_float(type_: str, tmp_path: Path) -> None:
    r = random.Random(1)
    cents = [6602368, 0, -1, *(r.randrange(-(10**7), 10**7) for _ in range(200))]
    amounts = [None, *(Decimal(number).scaleb(-2) for number in cents)]
    is_float = type_ == "FLOAT"
    nearest = [None, *(float(np.float32(str(v)) if is_float else str(v)) for v in amounts[1:])]

    found = parquet_cells(tmp_path, type_, pa.array(amounts, pa.decimal128(10, 2)))
    assert found == nearest


def test_nanoseconds_before_their_first_microsecond_are_refused(tmp_path: Path) -> None:
    cells = pa.array([-(2**63), -(2**63) + 1000], pa.int64()).cast(pa.timestamp("ns"))
    (found,) = parquet_cells(tmp_path, "NAIVE_DATETIME", cells)
    assert found.endswith(" is not a valid NAIVE_DATETIME")


def test_nanoseconds_with_a_zone_are_taken_in_the_hour_that_autumn_repeats(tmp_path: Path) -> None:
    # 02:30 in Berlin, before and after the end of summer time.
    times = [datetime(2024, 10, 27, hour, 30, 0, 1, UTC) for hour in (0, 1)]
    nanoseconds = [int(time.timestamp()) * 10**9 + 1999 for time in times]
    cells = pa.array(nanoseconds, pa.int64()).cast(pa.timestamp("ns", "Europe/Berlin"))

    assert parquet_cells(tmp_path, "UTC_DATETIME", cells) == times
    first = pa.array([-(2**63)], pa.int64()).cast(cells.type)
    (found,) = parquet_cells(tmp_path, "UTC_DATETIME", first)
    assert found.endswith(" is not a valid UTC_DATETIME")


def test_an_int96_time_of_a_parquet_file_is_read_in_all_years(tmp_path: Path) -> None:
    times = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999000)]
    cells = pa.array(times, pa.timestamp("us"))

    found = parquet_cells(tmp_path, "NAIVE_DATETIME", cells, use_deprecated_int96_timestamps=True)
    assert found == times


class Functions:
    """A Spark that keeps the functions of a statement."""

    def __init__(self) -> None:
        self.found: list[Callable[..., Any]] = []
        self.tasks = 0

    def range(self, start: int, end: int, step: int, tasks: int) -> Functions:
        assert (start, end, step) == (0, tasks, 1)
        self.tasks += tasks
        return self

    def mapInArrow(self, function: Callable[..., Any], schema: object) -> Functions:  # noqa: N802
        self.found.append(function)
        return self

    def unionAll(self, other: Functions) -> Functions:  # noqa: N802
        assert other is self
        return self


def test_no_function_with_keys_is_so_large_that_spark_writes_it_to_disk(tmp_path: Path) -> None:
    path = small(tmp_path, is_encrypted=True).write()
    (source,) = find_sources(read(path), tmp_path, Limits())
    assert source.file.key
    sources = [
        replace(
            source,
            place=place,
            file=replace(source.file, name=f"{place:0200}", path=f"{place:0200}",
                         digest=f"{place:064}", key=os.urandom(32)),
        )
        for place in range(1, 4002)
    ]  # fmt: skip
    spark: Any = Functions()

    read_each(spark, sources, staged_rows, StructType())

    assert spark.tasks == 4001
    serializer: Any = CloudPickleSerializer()  # type: ignore[no-untyped-call]
    assert all(len(serializer.dumps(function)) < 1 << 18 for function in spark.found)


MEMORY = """
import resource, sys
from pathlib import Path
from dbt_history.landing import read_request
from dbt_history.landing.files import Limits
from dbt_history.landing.land import find_sources
from dbt_history.landing.rows import staged_rows
path = Path(sys.argv[1])
source = find_sources(read_request(path), path.parent, Limits())[0]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(batch.num_rows for batch in staged_rows(source))
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_file_of_100_mb_is_read_in_a_fraction_of_its_size_in_memory(tmp_path: Path) -> None:
    r = random.Random(1)
    lines = [
        ",".join(row)
        for row in upserts(*((str(n), r.randbytes(40).hex(), "1") for n in range(6_000)))
    ]
    block = ("\n".join(lines) + "\n").encode()
    data = ",".join(HEADER).encode() + b"\n" + block * (100 * 2**20 // len(block) + 1)
    path = one_file(tmp_path, data, compression="ZSTD", is_encrypted=True)
    size = len(data)
    del data

    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True
    )

    rows, megabytes = map(int, done.stdout.split())
    assert size > 100 * 2**20
    assert rows == 6_000 * (size // len(block))
    assert megabytes < 64, f"{megabytes} MB more than before the file"


def test_quotes_follow_the_csv_grammar() -> None:
    """Compare every text of up to seven of these characters with a regular expression."""
    for length in range(8):
        for letters in itertools.product(b'",\na', repeat=length):
            data = bytes(letters)
            assert csv_cells.is_strict(data) == (b'"' not in csv_cells.QUOTED.sub(b"", data)), data
