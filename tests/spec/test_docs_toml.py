"""`docs.toml` describes every definition, field and handler in one form, and in our own words."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Object, Union
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import is_array, is_object
from tests.harness.commands import UPSTREAM

STORE = Store()
REVISIONS = list(STORE.pins)
WORDS = STORE.docs
COMMON: dict[str, str] = WORDS["common"]
DEFINITIONS: dict[str, dict[str, Any]] = {name: table for name, table in WORDS.items() if name != "common"}
LONGEST = 260
RUN = 9

every_revision = pytest.mark.parametrize("revision", REVISIONS)

HANDLER = "(handler)"
Place = tuple[str, str | None]
"""A definition and the wire name of one of its fields; None for the definition, HANDLER for its handler."""


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("Tool = []", "/Tool"),
        ("[Tool]\ndoc = 1", "/Tool/doc"),
        ("[Tool.fields]\nname = []", "/Tool/fields"),
        ('[Tool.since."2025-06-18"]\nfields = 1979-01-01', "/Tool/since/2025-06-18/fields"),
        ("common = 1", "/common"),
    ],
)
def test_a_value_of_another_form_is_refused_with_its_place(text: str, pointer: str, tmp_path: Path) -> None:
    (tmp_path / "docs.toml").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=f"docs.toml#{pointer}: "):
        _ = Store(tmp_path).docs


@cache
def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


def shown(whole: Protocol) -> Iterator[tuple[Place, str]]:
    """Yield each place of the bindings of a revision with its description."""
    for name, definition in whole.definitions.items():
        yield (name, None), definition.doc
        if isinstance(definition.type, Object):
            for field in definition.type.fields:
                yield (name, field.wire), field.doc
    for method in whole.methods:
        yield (method.definition, HANDLER), method.handling


def stated() -> Iterator[tuple[Place, str]]:
    """Yield each place in `docs.toml` with its description, for all revisions."""
    for name, table in DEFINITIONS.items():
        for part in (table, *table.get("since", {}).values()):
            if "doc" in part:
                yield (name, None), part["doc"]
            if "handler" in part:
                yield (name, HANDLER), part["handler"]
            for wire, text in part.get("fields", {}).items():
                yield (name, wire), text


def texts() -> dict[str, str]:
    """Return every text of `docs.toml` by its place."""
    found = {f"common.{wire}": text for wire, text in COMMON.items()}
    for index, ((name, wire), text) in enumerate(stated()):
        found[f"{name}.{wire} #{index}"] = text
    return found


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def runs(text: str) -> set[tuple[str, ...]]:
    """Return all sequences of `RUN` successive words of a text."""
    found = words(text)
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}


def descriptions(node: Any) -> Iterator[str]:
    """Yield the descriptions in a schema file."""
    if is_object(node):
        if isinstance(node.get("description"), str):
            yield node["description"]
        for value in node.values():
            yield from descriptions(value)
    elif is_array(node):
        for value in node:
            yield from descriptions(value)


@every_revision
def test_every_definition_is_documented(revision: str) -> None:
    whole = protocol(revision)
    assert [name for name, definition in whole.definitions.items() if not definition.doc] == []


@every_revision
def test_descriptions_of_calls_and_handlers_begin_with_an_imperative(revision: str) -> None:
    for method in protocol(revision).methods:
        assert method.doc.split()[0] in {"Ask", "Check", "Open", "Pass", "Tell"}, method.name
        assert method.handling.split()[0] in {"React", "Record", "Return", "Send"}, method.name


@every_revision
def test_handler_descriptions_name_members_by_their_wire_names(revision: str) -> None:
    whole = protocol(revision)
    for method in whole.methods:
        for named in re.findall(r"`params\.([^`]+)`", method.handling):
            assert method.params is not None
            params = whole.resolve(method.params)
            members = params.members if isinstance(params, Union) else (params,)
            objects = [part for part in map(whole.resolve, members) if isinstance(part, Object)]
            assert any(part.field(named) for part in objects), (method.name, named)
    lowered = {method.name: method.handling for method in lower(whole).methods}
    assert "set `isError`" in next(method.handling for method in whole.methods if method.name == "tools/call")
    assert "set `is_error`" in lowered["tools/call"]


@every_revision
def test_fields_are_documented(revision: str) -> None:
    fields = [(place, text) for place, text in shown(protocol(revision)) if place[1] not in (None, HANDLER)]
    missing = [place for place, text in fields if not text]
    share = 1 - len(missing) / len(fields)
    print(f"{revision}: {len(fields) - len(missing)} of {len(fields)} fields ({share:.1%}), without: {missing}")
    assert share >= 0.95


def test_every_description_is_used_by_a_revision() -> None:
    seen: defaultdict[Place, set[str]] = defaultdict(set)
    for revision in REVISIONS:
        for place, text in shown(protocol(revision)):
            seen[place].add(text)
    assert [(place, text) for place, text in stated() if text not in seen[place]] == []


def test_common_descriptions_are_shared_by_several_definitions() -> None:
    for wire in COMMON:
        everything = [each for revision in REVISIONS for each in shown(protocol(revision))]
        users = {name for (name, field), text in everything if (field, text) == (wire, COMMON[wire])}
        repeated = [name for name, table in DEFINITIONS.items() if table.get("fields", {}).get(wire) == COMMON[wire]]
        assert len(users) > 1
        assert repeated == []


def test_dated_descriptions_belong_to_later_revisions_of_the_definition() -> None:
    for name in [name for name, table in DEFINITIONS.items() if "since" in table]:
        table = DEFINITIONS[name]
        first = next(revision for revision in REVISIONS if name in protocol(revision).definitions)
        for since, part in table["since"].items():
            assert since in REVISIONS
            assert since > first, "the words of the first revision stand without a date"
            assert name in protocol(since).definitions
            assert part.get("doc") or part.get("fields")


def test_entries_have_known_keys() -> None:
    for name, table in DEFINITIONS.items():
        assert set(table) <= {"doc", "fields", "handler", "since"}, name
        assert all(set(part) <= {"doc", "fields"} for part in table.get("since", {}).values()), name


def test_descriptions_are_short_sentences() -> None:
    for place, text in texts().items():
        assert len(text) <= LONGEST, place
        assert re.fullmatch(r"\S.*[.`)]", text), place


@pytest.mark.skipif(not UPSTREAM.exists(), reason="the upstream files are not here")
def test_descriptions_copy_no_upstream_text() -> None:
    files = [json.loads((UPSTREAM / revision / "schema.json").read_text("utf-8")) for revision in REVISIONS]
    theirs = {run for file in files for text in descriptions(file) for run in runs(text)}
    assert len(theirs) > 1000
    copied = {place: sorted(runs(text) & theirs) for place, text in texts().items()}
    assert {place: found for place, found in copied.items() if found} == {}
