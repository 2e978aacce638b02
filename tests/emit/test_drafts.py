"""Drafts that break a rule: they become bindings all the same and say how they were read, or a strict reading stops."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.emit.bindings import emit
from mcp_bindgen.emit.trial import try_import
from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.protocol.examples import example
from mcp_bindgen.protocol.naming import is_importable
from mcp_bindgen.protocol.schema import document_of
from mcp_bindgen.spec import BadInput, Store, external
from mcp_bindgen.spec.pointer import join, split, step
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from tests.support.commands import ROOT, save
from tests.support.drafts import DRAFTS, Draft
from tests.support.effort import examples
from tests.support.schema_damage import damaged
from tests.support.small_schemas import Schema, small
from tests.support.small_schemas import draft as draft_of_a_library

SEMANTICS = Store().semantics
FACT = re.compile(r"write (?P<fact>\S+ = .+) in a file for --semantics$")

every_draft = pytest.mark.parametrize("draft", DRAFTS)


def read(folder: Path, schema: Schema, facts: str = "") -> Protocol:
    """The protocol model of a schema file, read leniently."""
    (folder / "facts.toml").write_text(facts, "utf-8")
    semantics = merge_semantics(SEMANTICS, read_semantics(folder / "facts.toml"))
    return build(external(save(folder / "draft.json", schema), "draft", semantics))


@every_draft
def test_a_draft_becomes_bindings_and_says_how_it_was_read(tmp_path: Path, draft: Draft) -> None:
    protocol = read(tmp_path, draft.schema)
    first = protocol.decisions[0]
    assert {decision.kind for decision in protocol.decisions} >= {draft.kind}
    found = [decision for decision in protocol.decisions if decision.kind == draft.kind]
    assert len(found) == 1 + draft.more
    assert found[0].pointer == draft.pointer
    assert draft.says in found[0].reason
    assert draft.reading in found[0].reading
    assert found[0].fix
    assert str(first).startswith(f"{tmp_path / 'draft.json'}#/")
    files = emit(protocol, "acme.draft", "mcp-bindgen generate")
    try_import(files)
    assert {name for name in draft.schema["$defs"] if is_importable(name)} <= exported(files["types.py"])


@every_draft
def test_strict_stops_at_the_first_decision(tmp_path: Path, draft: Draft) -> None:
    first = read(tmp_path, draft.schema).decisions[0]
    with pytest.raises(BadInput) as caught:
        build(external(tmp_path / "draft.json", "draft", SEMANTICS, strict=True))
    error = caught.value
    assert (error.file, error.pointer, error.message, error.fix) == (first.file, first.pointer, first.reason, first.fix)


@every_draft
def test_a_decision_names_a_place_in_the_file(tmp_path: Path, draft: Draft) -> None:
    for decision in read(tmp_path, draft.schema).decisions:
        node: Any = draft.schema
        for token in split(decision.pointer):
            node = step(node, token)


@every_draft
def test_what_the_schema_accepts_is_accepted(tmp_path: Path, draft: Draft) -> None:
    model = document_of(read(tmp_path, draft.schema))
    ours = jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/X", **model}) if draft.accepts else None
    for value in draft.accepts:
        if "leads nowhere" not in draft.says:
            theirs = jsonschema_rs.Draft202012Validator({"$ref": "#/$defs/X", **draft.schema})
            assert theirs.is_valid(value), "the test itself is wrong"
        assert ours is not None
        assert ours.is_valid(value)


@every_draft
def test_a_fact_settles_the_decision_that_names_it(tmp_path: Path, draft: Draft) -> None:
    before = read(tmp_path, draft.schema)
    facts = {decision: match["fact"] for decision in before.decisions if (match := FACT.search(decision.fix))}
    after = read(tmp_path, draft.schema, "\n".join(facts.values()))
    assert not facts.keys() & set(after.decisions)
    assert set(after.decisions) <= set(before.decisions)
    assert after.methods == before.methods


def test_a_fact_that_does_not_fit_is_told(tmp_path: Path) -> None:
    protocol = read(tmp_path, small(), 'results."books/find" = "Gone"')
    (decision,) = protocol.decisions
    assert (decision.kind, decision.pointer) == ("result-assumed", "/$defs/FindBookRequest")
    assert decision.reason.endswith("there is no Gone")


def test_every_kind_of_decision_has_a_draft() -> None:
    assert {draft.values[0].kind for draft in DRAFTS} == kinds()


def test_every_kind_of_decision_is_documented() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "drafts.md").read_text("utf-8"), re.MULTILINE)
    assert kinds() <= {name for row in rows for name in re.findall("`([a-z-]+)`", row)}


@cache
def kinds() -> set[str]:
    """The kinds of decision that the generator takes."""
    found: set[str] = set()
    for path in (ROOT / "generator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="settle"), args=[ast.Constant(value=str(kind)), *_]):
                    found.add(kind)
                case _:
                    pass
    return found


def test_our_own_revisions_need_no_decision() -> None:
    store = Store()
    for revision in store.pins:
        source = store.effective(revision)
        assert source.reading.strict
        assert build(source).decisions == ()


def test_the_drafts_are_json(tmp_path: Path) -> None:
    for draft in DRAFTS:
        assert json.loads(json.dumps(draft.values[0].schema)) == draft.values[0].schema


# --- whatever comes -------------------------------------------------------------------------------------------

NO_SCHEMA = ("half of a character", "nested too deeply", "too often")
"""What is said of a document that cannot be read as a schema."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Values of every definition of the draft that is damaged, and some of none."""
    whole = read(tmp_path_factory.mktemp("whole"), draft_of_a_library())
    valid = [example(whole, one.type, full=full) for one in whole.definitions.values() for full in (False, True)]
    return [*valid, None, 1, 1.5, "a", [], {}, {"a": "a"}, {"method": "echo"}, True]


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(150, 800), deadline=None)
def test_any_damage_is_read_as_a_schema_that_accepts_the_same_or_more(
    seed: int, samples: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    schema = damaged(draft_of_a_library(), Random(seed))
    protocol = read_or_refuse(tmp_path_factory.getbasetemp(), schema)
    if protocol is None or "members-without-type" in {decision.kind for decision in protocol.decisions}:
        return  # what has members is taken for an object, although the schema accepts other values too
    ours = document_of(protocol)
    names = {definition.alias or name: name for name, definition in protocol.definitions.items()}
    for name in schema["$defs"].keys() & names.keys():
        theirs = validator(name, schema)
        valid = [value for value in samples if theirs is not None and theirs.is_valid(value)]
        model = jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{names[name]}", **ours})
        assert [value for value in valid if not model.is_valid(value)] == []


@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(8, 50), deadline=None)
def test_any_damage_leaves_bindings_that_import(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    schema = damaged(draft_of_a_library(), Random(seed))
    protocol = read_or_refuse(tmp_path_factory.getbasetemp(), schema)
    if protocol is not None:
        files = emit(protocol, "acme.draft", "mcp-bindgen generate")
        try_import(files)
        assert {name for name in schema["$defs"] if is_importable(name)} <= exported(files["types.py"])


def read_or_refuse(folder: Path, schema: Schema) -> Protocol | None:
    """The protocol model of a schema; `None` where the document is no schema."""
    try:
        return read(folder, schema)
    except BadInput as error:
        if any(words in error.message for words in NO_SCHEMA):
            return None
        raise


def validator(name: str, schema: Schema) -> jsonschema_rs.Draft202012Validator | None:
    """What judges a definition, if it and all that it refers to is JSON Schema at all."""
    reached: Schema = {}
    pending = [name]
    while pending:
        here = pending.pop()
        if here in schema["$defs"] and here not in reached:
            reached[here] = schema["$defs"][here]
            pending += re.findall(r'"#/\$defs/([^"]*)"', json.dumps(reached[here]))
    try:
        return jsonschema_rs.Draft202012Validator({"$ref": f"#{join('/$defs', name)}", "$defs": reached})
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def exported(types: str) -> set[str]:
    """The names in `__all__` of a module."""
    for node in ast.parse(types).body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=value):
                return set(ast.literal_eval(value))
            case _:
                pass
    raise AssertionError("there is no __all__")
