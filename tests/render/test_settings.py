"""The settings of a node, `meta.history` and `unique_key`: accepted or refused; no Spark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_history.conventions import KNOWN, ConventionError, from_settings
from dbt_history.explore.tables import is_log_without_versions
from dbt_history.timeline.settings import settings_of
from tests.support.markdown import page, table_after
from tests.support.rendering import Renderer

HISTORY = {"convention": "validity"}


def node(meta: Any, unique_key: Any = "id", **config: Any) -> dict[str, Any]:
    return {
        "unique_id": "model.shop.customers",
        "name": "customers",
        "resource_type": "model",
        "config": {"meta": meta, "unique_key": unique_key, **config},
    }


def settings(call: Renderer, meta: Any, unique_key: Any = "id", of: str = "batch") -> Any:
    macro = {"batch": "_history_settings", "append": "_append_settings"}[of]
    return call(macro, node=node(meta, unique_key), caller_name=f"history_{of}")


def refusal(call: Renderer, meta: Any, unique_key: Any = "id", of: str = "batch") -> str:
    with pytest.raises(DbtRuntimeError) as refused:
        settings(call, meta, unique_key, of)
    message = str(refused.value)
    assert "in model: model.shop.customers" in message
    return message


@pytest.mark.parametrize("of", ["batch", "append"])
@pytest.mark.parametrize("value", [["validity"], [], 1, 0, 1.5, " "], ids=repr)
def test_history_as_a_list_or_a_number_is_refused(call: Renderer, of: str, value: Any) -> None:
    assert f"dbt_history.history_{of}: the metadata" in refusal(call, {"history": value}, of=of)


@pytest.mark.parametrize(
    ("materialized", "guide"),
    [
        ("history", "guides/history"),
        ("history_batch", "guides/batches"),
        ("history_append", "flow/history_append"),
    ],
)
def test_a_refusal_of_settings_names_the_page_that_lists_them(
    call: Renderer, materialized: str, guide: str
) -> None:
    own = node({"history": {"convention": "validity", "colour": 1}}, materialized=materialized)
    macro = "_append_settings" if "append" in materialized else "_history_settings"
    with pytest.raises(DbtRuntimeError) as refused:
        call(macro, node=own, caller_name=materialized)

    assert f"way out: docs/{guide}.md#settings lists them" in str(refused.value)
    assert "\n## Settings\n" in page(f"docs/{guide}.md")


def test_a_key_that_is_no_name_is_refused_as_an_argument(call: Renderer) -> None:
    with pytest.raises(DbtRuntimeError, match=r"dbt_history: the argument key, or unique_key,"):
        call("_key_columns", key=5)


@pytest.mark.parametrize("name", ["histroy", "History", "histry", "hiistory"])
def test_misspelt_history_metadata_is_refused(call: Renderer, name: str) -> None:
    meta = {name: HISTORY, "owner": "me", "historic": True, "story": 1}
    for of in ("batch", "append"):
        assert f"meta has {name}, did you mean history?" in refusal(call, meta, of=of)


def test_history_as_text_is_the_name_of_a_convention(call: Renderer) -> None:
    assert settings(call, {"history": "validity"}) == settings(call, {"history": HISTORY})
    message = refusal(call, {"history": "validty"})
    assert "no convention has this name" in message
    assert "way out: did you mean validity?" in message
    assert "expected: fivetran, validity, naksha, dbt_snapshot" in message


@pytest.mark.parametrize("meta", [None, {}, {"history": True}, {"history": {}}], ids=repr)
def test_a_batch_needs_a_named_convention(call: Renderer, meta: Any) -> None:
    message = refusal(call, meta, unique_key=None)
    assert "meta.history names no convention: fivetran, validity, naksha, dbt_snapshot" in message
    assert "unique_key is missing" in message
    assert settings(call, meta, of="append")["key"] == ["id"]


@pytest.mark.parametrize("of", ["batch", "append"])
@pytest.mark.parametrize("value", ["false", "true", 1, 0, None], ids=repr)
def test_allow_full_refresh_must_be_a_boolean(call: Renderer, of: str, value: Any) -> None:
    meta = {"history": {**(HISTORY if of == "batch" else {}), "allow_full_refresh": value}}
    assert "allow_full_refresh is" in refusal(call, meta, of=of)
    meta["history"]["allow_full_refresh"] = False
    assert settings(call, meta, of=of)["allow_full_refresh"] is False


@pytest.mark.parametrize("of", ["batch", "append"])
def test_an_enforced_contract_is_refused(call: Renderer, of: str) -> None:
    macro = {"batch": "_history_settings", "append": "_append_settings"}[of]
    meta = {"history": HISTORY if of == "batch" else {}}
    model = node(meta, contract={"enforced": True, "alias_types": True})
    with pytest.raises(DbtRuntimeError, match="contract is enforced"):
        call(macro, node=model, caller_name="history")
    model["config"]["contract"]["enforced"] = False
    call(macro, node=model, caller_name="history")


def test_a_log_with_a_convention_is_an_append_only_version_table(call: Renderer) -> None:
    numbers = {"convention": "validity", "type": "bigint", "append_only": True}
    found = settings(call, {"history": numbers}, of="append")["versions"]
    assert (found["start"], found["end"], found["type"]) == ("valid_from", None, "bigint")
    assert settings(call, {"history": True}, of="append")["versions"] is None
    both = "needs both a convention and append_only: true"
    for meta in (HISTORY, {"append_only": True}, {"start": "at"}):
        assert both in refusal(call, {"history": meta}, of="append")
    assert "type and version_order are for a log with" in refusal(
        call, {"history": {"type": "bigint"}}, of="append"
    )
    assert "version_order is up: any, or increasing" in refusal(
        call, {"history": {**numbers, "version_order": "up"}}, of="append"
    )
    assert "no setting open_end for a log" in refusal(
        call, {"history": {**numbers, "open_end": 9}}, of="append"
    )


@pytest.mark.parametrize("of", ["batch", "append"])
@pytest.mark.parametrize("key", [{"id": "bigint"}, 3, [1], [["id"]], True], ids=repr)
def test_a_key_must_be_a_name_or_a_list_of_names(call: Renderer, of: str, key: Any) -> None:
    meta = {"history": HISTORY} if of == "batch" else {}
    assert "unique_key is " in refusal(call, meta, key, of=of)


@pytest.mark.parametrize("share", ["0.5", True, [1], 2], ids=repr)
def test_max_deleted_share_must_be_a_number_of_its_range(call: Renderer, share: Any) -> None:
    meta = {"history": {**HISTORY, "max_deleted_share": share}}
    assert "max_deleted_share is" in refusal(call, meta)


@pytest.mark.parametrize(
    ("of", "path"),
    [("batch", "docs/guides/batches.md"), ("append", "docs/flow/history_append.md")],
)
def test_the_page_of_a_materialization_has_a_row_for_each_setting(
    call: Renderer, of: str, path: str
) -> None:
    known = re.search(r"\(known: ([^)]*)\)", refusal(call, {"history": {"zzz": 1}}, of=of))
    assert known
    rows = table_after(page(path).split("## Settings", 1)[1], "| setting |")
    assert sorted(known[1].split(", ")) == sorted(
        name for row in rows for name in re.findall(r"\w+", row["setting"])
    )


def test_the_page_of_the_commands_has_a_row_for_each_setting_of_generate(call: Renderer) -> None:
    problems: list[str] = []
    call("_generated_model", node=node({}), said={"zzz": 1}, problems=problems)
    (message,) = problems
    known = re.search(r"\(known: ([^)]*)\)", message)
    assert known
    rows = table_after(page("docs/commands.md").split("## Settings of", 1)[1], "| setting |")
    assert sorted(known[1].split(", ")) == sorted(row["setting"].strip("`") for row in rows)


def test_the_conventions_of_the_guide_are_those_of_the_macro_and_of_python(call: Renderer) -> None:
    rows = table_after(page("docs/guides/how_it_works.md"), "| convention |")
    assert [row["convention"] for row in rows] == [*KNOWN]
    with pytest.raises(DbtRuntimeError, match=f"{', '.join(KNOWN)}, or a mapping"):
        call("convention", convention="none of them")
    for row in rows:
        name, columns = row["convention"], row["start, end, active"]
        record = call("convention", convention=name)
        named = dict.fromkeys(record[one] for one in ("start", "end", "active", "version_id"))
        told = [text for text in re.findall(r"`(\w+)`", f"`{columns}`") if text != "version_id"]
        assert told == [text for text in named if text], name
        open_end = None if row["open end"] == "NULL" else row["open end"]
        stored = (record["type"], record["open_end"], str(record["gap"]))
        assert stored == (row["type"], open_end, row["gap"]), name
        settings_of_row = {"convention": name, "gap": row["gap"], "open_end": open_end}
        assert from_settings(settings_of_row) == KNOWN[name]


@pytest.mark.parametrize(
    ("gap", "type_"),
    [
        ("0", "timestamp"), ("0 milliseconds", "timestamp"), (0, "timestamp"),
        ("0", "bigint"), ("0", "date"), ("0 days", "date"),
    ],
)  # fmt: skip
def test_a_gap_of_zero_may_be_a_text(call: Renderer, gap: Any, type_: str) -> None:
    found = call("convention", convention={"convention": "validity", "type": type_, "gap": gap})
    assert found["gap"] == 0
    assert call("_shift_by_gap", expression="x", convention=found) == "x"
    other = call("convention", convention={**found, "gap": 1 if type_ != "timestamp" else "1 day"})
    assert other["gap"] != 0


@pytest.mark.parametrize("none", [None, "none", "None"])
def test_none_may_be_a_text_as_in_yml(call: Renderer, none: Any) -> None:
    meta = {
        "convention": "fivetran", "active": none, "open_end": none, "max_deleted_share": none,
        "batches_per_commit": none,
    }  # fmt: skip
    found = settings(call, {"history": meta})
    assert [found["max_deleted_share"], found["batches_per_commit"]] == [None, None]
    assert [found["convention"]["active"], found["convention"]["open_end"]] == [None, None]
    read = from_settings(meta)
    assert (read.active, read.open_end) == (None, None)
    assert KNOWN["fivetran"] == from_settings({"convention": "fivetran"})


@pytest.mark.parametrize(
    ("of", "meta", "config", "problem"),
    [
        ("history", {}, {"source": "changes"}, "source is in the config, where nothing reads it"),
        ("history", {}, {"history": "fivetran"}, "history is in the config"),
        ("batch", {"history": HISTORY}, {"late_events": False}, "late_events is in the config"),
        ("append", {}, {"append_only": True}, "append_only is in the config"),
        ("history", {"source": "changes"}, {}, "source is directly under meta"),
        ("history", {"updated_at": "at"}, {}, "write meta.history.updated_at"),
        ("batch", {"convention": "fivetran"}, {}, "convention is directly under meta"),
        ("append", {"allow_full_refresh": True}, {}, "allow_full_refresh is directly under meta"),
        ("append", {"mod_user": "invocation"}, {}, "mod_user is directly under meta"),
        ("history", {"continues": ["model.shop.old"]}, {}, "continues is directly under meta"),
    ],
    ids=str,
)
def test_a_setting_in_a_place_that_nothing_reads_is_refused(
    call: Renderer, of: str, meta: dict[str, Any], config: dict[str, Any], problem: str
) -> None:
    macro = "_append_settings" if of == "append" else "_history_settings"
    kinds = {"history": "history", "batch": "history_batch", "append": "history_append"}
    made = node(meta, materialized=kinds[of], **config)
    with pytest.raises(DbtRuntimeError) as refused:
        call(macro, node=made, caller_name=kinds[of])
    assert problem in str(refused.value)


def test_a_mark_of_deletions_directly_under_meta_is_refused_if_it_names_a_column(
    call: Renderer,
) -> None:
    """Nothing reads it there, so that deletions would be stored as versions."""
    settings = of_history(call, {"source": "changes"})
    capture = {"columns": [{"name": one, "type": "string"} for one in ("id", "Gone", "seen")]}

    def check(name: str, value: Any) -> None:
        call.context = {"model": node({name: value, "history": {"source": "changes"}})}
        call("_refuse_history_columns", capture=capture, settings=settings)

    for name, value in (("deleted", "gone"), ("except", ["seen", "Gone"])):
        with pytest.raises(DbtRuntimeError) as refused:
            check(name, value)
        assert f"{name} is directly under meta" in str(refused.value)
        assert f"write meta.history.{name}" in str(refused.value)
    check("deleted", "2024")
    check("deleted", True)
    check("except", ["seen", "Mondays"])


@pytest.mark.parametrize(("stored", "is_renamed"), [("number", True), ("other", False)])
def test_a_key_that_was_renamed_in_the_source_is_renamed_in_the_history_by_a_call(
    call: Renderer, stored: str, is_renamed: bool
) -> None:
    """Where the batches record a column that the SELECT does not have and the table has."""
    settings = of_history(call, {})
    capture = {
        "columns": [{"name": one, "type": "string"} for one in ("id", "v")],
        "stored": [stored, "v", "valid_from", "valid_to"], "log": {"key": ["number"]},
    }  # fmt: skip
    call.context = {"model": node({"history": {}}), "this": call.table("kept")}

    with pytest.raises(DbtRuntimeError) as refused:
        call("_refuse_history_columns", capture=capture, settings=settings)

    message = str(refused.value)
    assert "the table that exists has no column id" in message
    expected = (
        "dbt run-operation rename_column --args '"
        '{"table": "golden.kept", "from_column": "number", "to_column": "id"}\''
    )
    assert (f"rename it in the history, too: {expected}\n" in message) is is_renamed
    assert ("name its key in unique_key" in message) is not is_renamed


def test_notes_of_a_project_under_meta_are_its_own(call: Renderer) -> None:
    notes = {
        "source": "crm", "type": "fact", "updated_at": "2024-01-01", "convention": "kimball",
        "continues": "the table of 2019", "mod_user": True, "deleted": "gone", "except": {"a": 1},
    }  # fmt: skip
    for of in ("batch", "append"):
        settings(call, {**notes, "history": HISTORY if of == "batch" else True}, of=of)
    call("_history_settings", node=node(notes, materialized="history"), caller_name="history")


def test_late_events_is_a_boolean_and_needs_one_version_per_start(call: Renderer) -> None:
    for value in ("true", 1):
        meta = {"history": {**HISTORY, "late_events": value}}
        assert "late_events is" in refusal(call, meta)
    numbered = {"history": {"convention": "naksha", "late_events": True}}
    assert "versions have numbers of their own (i)" in refusal(call, numbered)
    assert settings(call, {"history": {**HISTORY, "late_events": True}})["late_events"] is True


def of_history(call: Renderer, meta: Any = None, key: Any = "id", **config: Any) -> Any:
    made = node({"history": meta} if meta else None, key, materialized="history", **config)
    return call("_history_settings", node=made, caller_name="history")


def test_a_history_has_the_convention_validity_unless_another_is_named(call: Renderer) -> None:
    found = of_history(call)
    assert (found["convention"]["name"], found["source"]) == ("validity", "state")
    assert of_history(call, "fivetran")["convention"]["name"] == "fivetran"
    assert of_history(call, {"updated_at": "at"})["updated_at"] == "at"
    assert of_history(call, updated_at="at")["updated_at"] == "at"
    of_table = {**node(None, materialized="history"), "schema": "s"}
    assert settings_of({"h": of_table}, "s.customers").convention == KNOWN["validity"]


@pytest.mark.parametrize(
    ("meta", "config", "problem"),
    [
        ({"source": "chnages"}, {}, 'source is "chnages": state'),
        ({"updated": "at"}, {}, "no setting updated"),
        ({"update_at": "at"}, {}, "no setting update_at, did you mean updated_at?"),
        ({"updated_at": ["at"]}, {}, 'updated_at is ["at"], which is not the name of a column'),
        ({"updated_at": "ID"}, {}, "updated_at is ID, a column of unique_key"),
        ({"updated_at": "at"}, {"updated_at": "on"}, "remove one of them"),
        ({"deleted": "gone"}, {}, "deleted is for source: changes"),
        ({}, {"hard_deletes": "ignore"}, "hard_deletes is a setting of snapshots: here it is sou"),
        ({}, {"check_cols": ["city"]}, "here it is track_columns of meta.history"),
        ({"batches_per_commit": 1}, {}, "no setting batches_per_commit"),
        ("naksha", {}, "convention naksha cannot be used"),
        ({"convention": "validity", "type": "bigint"}, {}, "needs updated_at, and source: changes"),
    ],
    ids=repr,
)
def test_settings_of_a_history_that_contradict_each_other_are_refused(
    call: Renderer, meta: Any, config: dict[str, Any], problem: str
) -> None:
    with pytest.raises(DbtRuntimeError) as refused:
        of_history(call, meta, **config)
    assert problem in str(refused.value)
    assert "dbt_history.history: " in str(refused.value)


@pytest.mark.parametrize(
    ("materialized", "ways"),
    [
        ("history", ("track_columns of meta.history", "by unique_key", None)),
        ("history_batch", ("track_columns of batch_rows", "by unique_key", "with _stage delete")),
        ("incremental", ("track_columns of batch_rows", "by unique_key", "with _stage delete")),
        ("history_append", ("rows of a log are never", "in the SELECT", "is a row of the log")),
    ],
)
def test_settings_that_dbt_reads_in_other_models_are_refused_with_what_to_write_instead(
    call: Renderer, materialized: str, ways: tuple[str, str, str | None]
) -> None:
    columns, condition, deletion = ways
    ignored: dict[str, str] = {
        **dict.fromkeys(["merge_update_columns", "merge_exclude_columns"], columns),
        **dict.fromkeys(["incremental_predicates", "predicates"], condition),
    }
    if deletion:
        ignored |= {"check_cols": columns, "hard_deletes": deletion}
        ignored["invalidate_hard_deletes"] = deletion
    macro = "_append_settings" if materialized == "history_append" else "_history_settings"
    meta = {"history": HISTORY if macro == "_history_settings" else True}
    config = {"materialized": materialized}

    own = node(meta, **config, **dict.fromkeys(ignored, "x"))
    with pytest.raises(DbtRuntimeError) as refused:
        call(macro, node=own, caller_name="history")
    problems = [line for line in str(refused.value).splitlines() if "nothing reads here" in line]
    assert [line.split()[0] for line in problems] == list(ignored)
    for line, way in zip(problems, ignored.values(), strict=True):
        assert way in line

    none = dict.fromkeys(ignored)
    call(macro, node=node(meta, **config, **none), caller_name="history")


@pytest.mark.parametrize("number", ["1", True, 0, -1, 1.5], ids=repr)
def test_batches_per_commit_must_be_a_positive_number(call: Renderer, number: Any) -> None:
    meta = {"history": {**HISTORY, "batches_per_commit": number}}
    assert "batches_per_commit is" in refusal(call, meta)
    meta["history"]["batches_per_commit"] = 2
    assert settings(call, meta)["batches_per_commit"] == 2


def test_a_misspelt_setting_is_refused_with_the_closest_name(call: Renderer) -> None:
    message = refusal(call, {"history": {**HISTORY, "open_ned": None, "colour": 1}})
    assert "no setting open_ned, did you mean open_end? (known: convention, " in message
    assert "no setting colour (known:" in message


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"convention": ["validity"]}, "this is not the name of a convention"),
        (["validity"], "this is not the name of a convention"),
        (7, "this is not the name of a convention"),
        ({"convention": "validity", "open_end": "9999-02-30"}, "open_end is 9999-02-30"),
        (
            {"convention": "validity", "open_end": "later"},
            "open_end is later, which is not a timesta",
        ),
        ({"convention": "validity", "open_end": "2024-01-01 25:00"}, "open_end is 2024-01-01 25"),
        ({"convention": "validity", "type": "timestamp", "open_end": 5}, "open_end is 5, which"),
        ({"convention": "dbt_snapshot", "open_end": 5}, "open_end is 5, which is not a timestamp"),
        ({"convention": "validity", "open_end": 5, "gap": "1 day"}, "gap is 1 day"),
        ({"convention": "validity", "type": "date", "open_end": "2024-01-01 00:00"}, "open_end"),
        ({"convention": "validity", "type": "bigint", "open_end": 2**63}, "open_end is 9223372036"),
        ({"convention": "validity", "type": "bigint", "open_end": True}, "open_end is True"),
        ({"convention": "validity", "active": True}, "active is true, which is not a column"),
        ({"convention": "validity", "append_only": "false"}, 'append_only is "false"'),
        ({"convention": "validity", "gap": "soon"}, "gap is soon"),
        ({"start": "at", "end": "AT"}, "needs a start column and another end column"),
    ],
    ids=str,
)
def test_an_invalid_convention_is_refused(call: Renderer, record: Any, problem: str) -> None:
    with pytest.raises(DbtRuntimeError) as refused:
        call("convention", convention=record)
    assert problem in str(refused.value)


def test_an_integer_as_the_open_end_of_validity_makes_its_axis_one_of_integers(
    call: Renderer,
) -> None:
    said = {"convention": "validity", "open_end": 2147483647}
    found = call("convention", convention=said)
    assert (found["type"], found["open_end"]) == ("bigint", 2147483647)
    assert (from_settings(said).type, from_settings(said).open_end) == ("bigint", 2147483647)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("timestamp", "9999-12-31 23:59:59.999"),
        ("timestamp", "2000-02-29"),
        ("timestamp", "9999-12-31T23:59:59Z"),
        ("timestamp", "9999-12-31 00:00 Europe/Berlin"),
        ("date", "9999-12-31"),
        ("bigint", 2**63 - 1),
        ("bigint", "-5"),
    ],
)
def test_an_open_end_must_be_a_value_of_the_type(call: Renderer, type_: str, value: Any) -> None:
    record = {"convention": "validity", "type": type_, "open_end": value}
    assert call("convention", convention=record)["open_end"] == value


def test_a_run_operation_reports_the_node_with_an_unknown_convention(call: Renderer) -> None:
    with pytest.raises(DbtRuntimeError) as refused:
        call(
            "_table_settings",
            node=node({"history": "fivtran"}),
            convention=None,
            key=None,
            caller_name="clean_history",
        )
    assert "way out: did you mean fivetran?" in str(refused.value)
    assert "in model: model.shop.customers" in str(refused.value)


@pytest.mark.parametrize(
    ("meta", "problem"),
    [
        ({"histroy": True}, "model.shop.customers: meta has histroy, did you mean history?"),
        ({"histor_kind": "hx"}, "meta has histor_kind, did you mean history_kind?"),
        ({"history": {"kind": None}, "history_kind": "x"}, "kind is x: hx or events"),
        ({"history": ["id"]}, 'model.shop.customers: meta.history is ["id"]'),
        ({"history": {"refrences": []}}, "no setting refrences, did you mean references?"),
    ],
    ids=str,
)
def test_generate_history_refuses_invalid_metadata(call: Renderer, meta: Any, problem: str) -> None:
    found = call("_meta_problem", node=node(meta))
    problems: list[str] = [f"model.shop.customers: {found}"]
    if found is None:
        call("_generated_model", node=node(meta), said=meta["history"], problems=problems)
    assert any(problem in one for one in problems)


def test_generate_history_refuses_two_tables_with_one_mirror(call: Renderer) -> None:
    one = {**node({"history": True}), "unique_id": "model.shop.customers.v1", "version": 1}
    other = {**one, "unique_id": "model.shop.customers.v2", "version": 2}
    graph = {"nodes": {each["unique_id"]: each for each in (one, other)}, "sources": {}}
    call.context = {"graph": graph, "execute": True}
    with pytest.raises(DbtRuntimeError) as refused:
        call("generate_history")
    assert (
        "ref('customers', v=1), ref('customers', v=2) would have the same model customers_hx"
        in str(refused.value)
    )


def test_a_table_with_the_name_of_a_view_is_refused_before_any_view_is_made(call: Renderer) -> None:
    call.pretend_relations("customers", schema="on_day")
    tables = [{"name": name, "relation": call.table(name)} for name in ("customers", "orders")]
    with pytest.raises(DbtRuntimeError) as refused:
        call("_check_views", tables=tables, schema="on_day", at="now", mod_columns=False)
    assert "on_day.customers is there already, and is no view" in str(refused.value)
    assert "on_day.orders" not in str(refused.value)


@pytest.mark.parametrize("hours", ["7 days", -1, 0.5, True])
def test_the_hours_of_a_vacuum_are_a_whole_number(call: Renderer, hours: Any) -> None:
    with pytest.raises(DbtRuntimeError, match="vacuum_hours is not valid; nothing was done"):
        call("compact_history", vacuum_hours=hours)


def test_a_node_whose_metadata_names_a_convention_is_a_history(call: Renderer) -> None:
    for value, is_tracked in ((True, True), ({"kind": "hx"}, True), ("validity", False)):
        assert call("_is_tracked", node=node({"history": value})) is is_tracked


def test_the_marker_of_a_seed_alone_does_not_ask_for_a_history(call: Renderer) -> None:
    def seed(name: str, history: dict[str, str]) -> dict[str, Any]:
        own = {"unique_id": f"seed.shop.{name}", "name": name, "resource_type": "seed"}
        return {**node({"history": history}), **own}

    marked = seed("marked", {"empty_string": "<empty>"})
    tracked = seed("tracked", {"empty_string": "<empty>", "kind": "events", "key": "id"})
    call.context = {
        "graph": {"nodes": {each["unique_id"]: each for each in (marked, tracked)}, "sources": {}},
        "execute": True,
    }
    printed: list[str] = []
    call.context["print"] = printed.append
    call("generate_history")
    assert [text.splitlines()[0] for text in printed] == [
        "-- file: models/history/tracked_history.sql",
        "-- file: models/history/_history__models.yml",
    ]

    model = node({"history": {"empty_string": "<empty>"}})
    assert call("_is_tracked", node=model)
    problems: list[str] = []
    call("_generated_model", node=model, said=model["config"]["meta"]["history"], problems=problems)
    assert any("no setting empty_string" in one for one in problems)


def test_timelines_read_the_same_metadata() -> None:
    def read(value: Any) -> Any:
        found = {**node({"history": value}), "schema": "s", "alias": "customers"}
        return settings_of({"n": found}, "s.customers").convention

    assert read("validity") == read({"convention": "validity"}) is not None
    assert read(True) is None
    with pytest.raises(ConventionError, match=r"^meta.history of customers"):
        read(["validity"])


def test_timelines_and_pages_read_an_append_only_table(call: Renderer) -> None:
    numbers = {"convention": "validity", "type": "bigint", "append_only": True}
    log = node({"history": numbers}, materialized="history_append")
    found = settings_of({"n": {**log, "schema": "s"}}, "s.customers").convention
    assert found is not None
    assert (found.start, found.end) == ("valid_from", None)
    assert not is_log_without_versions(log)
    assert is_log_without_versions(node({}, materialized="history_append"))
    assert not call("_is_tracked", node=node({"history": {"start": "at", "append_only": True}}))


@pytest.mark.parametrize(
    ("shuffle", "snapshot", "written"),
    [
        (None, None, ["shuffle", "snapshot"]), ("200", "1", ["shuffle"]), ("8", "50", ["snapshot"]),
        ("auto", "2", []), ("199", "51", []),
    ],
)  # fmt: skip
def test_the_default_number_of_tasks_is_named_with_the_line_to_write(
    call: Renderer, shuffle: str | None, snapshot: str | None, written: list[str]
) -> None:
    keys = {
        "shuffle": ("spark.sql.shuffle.partitions", shuffle, "<number of cores>"),
        "snapshot": ("spark.databricks.delta.snapshotPartitions", snapshot, "2"),
    }
    before = {name: value for name, value, _ in keys.values() if value is not None}

    lines = (call("_advice_of_tasks", before=before) or "").splitlines()

    assert [line.split("  (")[0] for line in lines[1:]] == [
        f"  write: {keys[which][0]}: {keys[which][2]}" for which in written
    ]


def test_the_incremental_strategy_refuses_a_full_refresh_also_of_its_first_run(
    call: Renderer,
) -> None:
    """dbt would replace the table that is made for it with the staged rows."""
    call.context = {
        "model": node({"history": HISTORY}),
        "this": call.table("customers"),
        "should_full_refresh": lambda: True,
    }
    statements = call.pretend_answers({})
    with pytest.raises(DbtRuntimeError) as refused:
        call("prepare_incremental_history")
    message = str(refused.value)
    assert "dbt would store the staged rows in place of the history" in message
    assert "way out: set full_refresh: false on the model" in message
    assert not statements


def test_a_pre_hook_of_the_incremental_strategy_runs_before_the_first_select(
    call: Renderer,
) -> None:
    """dbt, which would run it later, finds it done."""
    hooks = [{"sql": "create view feed", "transaction": True}]
    call.context = {
        "model": node({"history": HISTORY}),
        "this": call.table("customers"),
        "should_full_refresh": lambda: False,
        "pre_hooks": hooks,
        "compiled_code": "select * from feed",
        "execute": True,
    }
    statements = call.pretend_answers({"create view feed": []})
    with pytest.raises(DbtRuntimeError, match="without an answer: create temporary view"):
        call("prepare_incremental_history")
    assert statements[0] == "create view feed"
    assert len(statements) == 2
    assert hooks == []


@pytest.mark.parametrize("of", ["history", "append"])
@pytest.mark.parametrize("name", ["pre-hook", "post-hook"])
def test_a_hook_outside_the_transaction_is_refused(call: Renderer, of: str, name: str) -> None:
    macro = f"_{of}_settings"
    meta = {"history": HISTORY if of == "history" else {}}
    plain, outside = ({"sql": "select 1", "transaction": said} for said in (True, False))
    call(macro, node=node(meta, **{name: [plain]}), caller_name="history")
    own = node(meta, file_format="csv", **{name: [plain, outside]})
    with pytest.raises(DbtRuntimeError) as refused:
        call(macro, node=own, caller_name="history")
    assert f"{name} has a hook outside the transaction, which would not run" in str(refused.value)
    assert "file_format is csv" in str(refused.value)
