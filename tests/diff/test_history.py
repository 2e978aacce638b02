"""`history` of one subject through all revisions, and `schema status --against` a file that was published again."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.diff import history as module
from mcp_bindgen.diff.selectors import find
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Object
from mcp_bindgen.spec import Store
from tests.harness.commands import ROOT, inside, save
from tests.harness.effort import cases

STORE = Store()
REVISIONS = list(STORE.pins)


@cache
def protocols() -> list[Protocol]:
    """Return the models of all revisions."""
    return [build(STORE.effective(revision)) for revision in REVISIONS]


def told(subject: str, *options: object) -> dict[str, Any]:
    """Return the history as JSON."""
    done = inside("history", subject, "--json", *options, code=0)
    assert done.stderr == ""
    record: dict[str, Any] = json.loads(done.stdout)
    return record


HISTORIES = {
    "Tool.annotations": ["2025-03-26 since"],
    "initialize": ["2024-11-05 since", "2025-11-25 changed", "2026-07-28 gone"],
    "CallToolRequest.params.task": ["2025-11-25 since", "2026-07-28 gone"],
    "ResourceTemplateReference": ["2024-11-05 since ResourceReference", "2025-06-18 renamed"],
    "ResourceReference.uri": ["2024-11-05 since", "2025-06-18 renamed ResourceTemplateReference.uri"],
    "-32042": ["2025-11-25 since URLElicitationRequired", "2026-07-28 gone URLElicitationRequired"],
    "HeaderMismatch": ["2026-07-28 since"],
    "subscriptions/listen": ["2026-07-28 since"],
    "Tool.inputSchema.properties": ["2024-11-05 since", "2026-07-28 opened"],
    "CallToolResult.content[]|AudioContent": ["2025-03-26 since"],
}
"""Subject -> revisions and events, with the name if it differs from the subject."""


@pytest.mark.full
def test_a_history_lists_the_events_and_names_of_a_subject() -> None:
    for subject, events in HISTORIES.items():
        found = [f"{event['revision']} {event['kind']} {event['name']}" for event in told(subject)["events"]]
        assert found == [event if event.count(" ") == 2 else f"{event} {subject}" for event in events]


@pytest.mark.full
def test_change_events_contain_the_findings_of_the_comparison() -> None:
    changed = {
        (event["revision"], finding["rule"], finding["subject"])
        for event in told("tools/call")["events"]
        for finding in event["findings"]
    }
    assert changed >= {
        ("2025-03-26", "union-member-added", "CallToolResult.content[]|AudioContent"),
        ("2025-06-18", "field-added-optional", "CallToolResult.structuredContent"),
        ("2025-11-25", "field-added-optional", "CallToolRequest.params.task"),
        ("2026-07-28", "field-removed-optional", "CallToolRequest.params.task"),
        ("2026-07-28", "union-member-added", "server->client result tools/call|InputRequiredResult"),
    }


@pytest.mark.full
def test_the_history_of_a_removed_method_names_its_replacement() -> None:
    assert "server/discover may take its place." in " ".join(inside("history", "initialize").stdout.split())


def test_a_field_that_is_no_longer_declared_is_not_reported_as_removed() -> None:
    said = " ".join(inside("history", "Tool.inputSchema.properties").stdout.split())
    assert "since 2024-11-05, without a name of its own since 2026-07-28" in said
    assert "Keep it, under the same name." in said
    assert "gone" not in said


@pytest.mark.full
def test_a_reused_name_has_two_histories() -> None:
    assert told("JSONRPCResponse")["names"] == dict.fromkeys(REVISIONS[3:], "JSONRPCResponse")
    assert told("JSONRPCResultResponse")["names"] == {
        **dict.fromkeys(REVISIONS[:3], "JSONRPCResponse"),
        **dict.fromkeys(REVISIONS[3:], "JSONRPCResultResponse"),
    }


def subjects(protocol: Protocol) -> list[str]:
    """Return all subjects of a revision that have a history."""
    fields = [
        f"{name}.{field.wire}" if field.wire.isidentifier() else f'{name}["{field.wire}"]'
        for name, definition in protocol.definitions.items()
        if isinstance(definition.type, Object)
        for field in definition.type.fields
    ]
    errors = [str(error.code) for error in protocol.errors]
    return [*(method.name for method in protocol.methods), *protocol.definitions, *errors, *fields]


@pytest.mark.full
@pytest.mark.parametrize("index", range(len(REVISIONS)), ids=REVISIONS)
def test_every_subject_has_a_history_that_agrees_with_the_schemas(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {(old.revision, new.revision): module.Step(old, new) for old, new in pairwise(protocols())}
    error_codes = {error.name: error.code for protocol in protocols() for error in protocol.errors}
    monkeypatch.setattr(module, "Step", lambda old, new, gates: steps[old.revision, new.revision])
    for subject in subjects(protocols()[index]):
        found = module.history(subject, protocols())
        assert subject in (*found.names.values(), str(error_codes.get(found.name)))
        there = [protocol for protocol in protocols() if protocol.revision in found.names]
        assert all(find(protocol, found.names[protocol.revision]) for protocol in there)
        had = "".join("x" if revision in found.names else " " for revision in REVISIONS)
        assert " " not in had.strip()
        kinds = [event.kind for event in found.events if event.kind not in ("changed", "renamed")]
        assert kinds == (["since"] if had.endswith("x") else ["since", "gone"])


@pytest.mark.full
def test_a_schema_file_extends_the_history(tmp_path: Path) -> None:
    schema = structure(REVISIONS[-1])
    schema["$defs"]["Tool"]["properties"]["colour"] = {"type": "string"}
    del schema["$defs"]["Tool"]["properties"]["annotations"]
    file = save(tmp_path / "draft.json", schema)
    found = [f"{event['revision']} {event['kind']}" for event in told("Tool.annotations", "--schema", file)["events"]]
    assert found == ["2025-03-26 since", "draft gone"]
    assert list(told("Tool.colour", "--schema", file)["names"]) == ["draft"]


@pytest.mark.full
def test_text_fits_80_columns() -> None:
    for subject in ("tools/call", "initialize", "RequestMetaObject", "-32042"):
        done = inside("history", subject, code=0)
        assert max(map(len, done.stdout.splitlines())) <= 80
        assert "\x1b" not in done.stdout


@pytest.mark.full
def test_an_unknown_subject_gives_a_one_line_error_with_suggestions() -> None:
    for wrong, near in [
        ("tools/cal", "did you mean tools/call"),
        ("Tool.anotations", "did you mean Tool.annotations"),
        ("Tol", "Tool"),
        ("Tool.annotations.", "Tool.annotations"),
        ("-32043", "-32042"),
        ("?!", "name a method, a definition"),
    ]:
        done = inside("history", wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert f"no revision has {wrong!r}" in done.stderr
        assert near in done.stderr


# --- a file that was published again ---------------------------------------------------------------------------------


def structure(revision: str) -> Any:
    """Return our schema of a revision."""
    return json.loads((ROOT / "schema" / revision / "schema.json").read_text("utf-8"))


@pytest.mark.full
@pytest.mark.parametrize("revision", cases(REVISIONS, quick=REVISIONS[-1:]))
def test_an_unchanged_schema_file_is_recognized_as_its_revision(revision: str, tmp_path: Path) -> None:
    file = save(tmp_path / "schema.json", structure(revision))
    done = inside("schema", "status", "--against", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{revision}: {file} changes nothing\n", "")


@pytest.mark.full
def test_schema_status_reports_the_changes_in_a_new_schema_file(tmp_path: Path) -> None:
    schema = structure("2025-06-18")
    tool = schema["$defs"]["Tool"]
    tool["properties"]["colour"] = {"type": "string"}
    tool["required"] = sorted([*tool["required"], "colour"])
    done = inside("schema", "status", "--against", save(tmp_path / "schema.json", schema), code=1)
    assert "MCP 2025-06-18 -> 2025-06-18 as in schema.json\n" in done.stdout
    assert "Tool.colour is new and required" in " ".join(done.stdout.split())


@pytest.mark.full
def test_a_changed_description_is_no_change(tmp_path: Path) -> None:
    schema = structure("2025-06-18")
    schema["$defs"]["Cursor"] = {"type": "string", "description": "Other words."}
    assert inside("schema", "status", "--against", save(tmp_path / "schema.json", schema)).returncode == 0


def test_a_correction_made_upstream_is_reported(tmp_path: Path) -> None:
    schema = structure("2026-07-28")
    content = schema["$defs"]["ElicitResult"]["properties"]["content"]["additionalProperties"]["anyOf"][1]
    content["type"] = ["string", "number", "boolean"]
    done = inside(
        "schema", "status", "--against", save(tmp_path / "schema.json", schema), "--revision", "2026-07-28", code=0
    )
    assert "changes nothing" in done.stdout
    assert "/$defs/ElicitResult/properties/content" in done.stderr


def test_bad_input_is_refused_in_one_line() -> None:
    for arguments, message in [
        (("--against", "missing.json", "--stubs"), "leave one of them out"),
        (("--against", "missing.json"), "missing.json"),
        (("--against", str(ROOT / "schema" / "2025-11-25" / "schema.json"), "--revision", "2025-11-52"), "2025-11-25"),
    ]:
        done = inside("schema", "status", *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert message in done.stderr
