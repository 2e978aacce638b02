"""`semantics.toml` and `revisions.toml` state the facts that schemas cannot state, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import pytest

from mcp_bindgen.emit.python.calls import sends
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Const, Field, Object, Ref, Type
from mcp_bindgen.runtime import Client, Context
from mcp_bindgen.runtime.protocol.request_scope import LEVELS
from mcp_bindgen.spec import BadInput, Store

STORE = Store()
REVISIONS = list(STORE.pins)
METHOD_TABLES = (
    "results alternatives capabilities arguments lifecycle names header_params cache_invalidations filters truncated"
)
OTHER_TABLES = "unions opt_in needs implied shared utilities batches defaults errors trace_context"
TABLES = [*METHOD_TABLES.split(), *OTHER_TABLES.split()]
ENTRIES = [(table, key) for table in TABLES for key in STORE.semantics[table]]
NOTICES: list[dict[str, Any]] = STORE.semantics["deprecations"]

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@cache
def protocol(revision: str) -> Protocol:
    return build(STORE.effective(revision))


def protocols() -> list[Protocol]:
    return [protocol(revision) for revision in REVISIONS]


def without_words(whole: Protocol) -> Protocol:
    """Return a lowered protocol without descriptions of errors and stated positions of arguments."""
    lowered = lower(whole)
    errors = tuple(replace(error, doc="", definition=None) for error in lowered.errors)
    return replace(lowered, errors=errors, methods=tuple(replace(one, arguments=()) for one in lowered.methods))


def makes_a_difference(revision: str, table: str, key: str) -> bool:
    """Return True if a revision differs, or cannot be read, without an entry."""
    semantics = copy.deepcopy(STORE.semantics)
    del semantics[table][key]
    try:
        without = build(replace(STORE.effective(revision), semantics=semantics))
    except BadInput:
        return True
    return without_words(without) != without_words(protocol(revision))


def test_the_tables_are_exactly_the_tables_that_the_generator_reads() -> None:
    names = {*TABLES, "behaviour", "deprecations", "handshake", "introductions", "orders", "shortcuts", "transports"}
    assert set(STORE.semantics) == names


def test_facts_of_transports_and_behaviour_flags_begin_with_a_revision() -> None:
    assert STORE.semantics["transports"].keys() == {"streamable-http", "stream-polling", "unnamed-revision"}
    assert set(STORE.semantics["transports"].values()) <= set(REVISIONS[1:])
    assert [whole.revision for whole in protocols() if whole.facts.unnamed_over_http] == ["2025-03-26"]
    assert {whole.facts.trace_context for whole in protocols()} == {("traceparent", "tracestate", "baggage")}
    assert set(STORE.semantics["behaviour"].values()) <= set(REVISIONS)
    assert [whole.facts.argument_errors_in_results for whole in protocols()] == [False, False, False, True, True]


@pytest.mark.full
def test_every_entry_makes_a_difference_in_a_revision() -> None:
    for table, key in ENTRIES:
        assert any(makes_a_difference(revision, table, key) for revision in REVISIONS)


def test_methods_in_the_tables_exist() -> None:
    for table in METHOD_TABLES.split():
        assert set(STORE.semantics[table]) <= {method.name for whole in protocols() for method in whole.methods}


def test_stated_methods_definitions_and_capabilities_exist() -> None:
    known = {method.name for whole in protocols() for method in whole.methods}
    assert set(STORE.semantics["utilities"].values()) <= known
    assert {name for names in STORE.semantics["cache_invalidations"].values() for name in names} <= known
    assert {whole.revision for whole in protocols() if whole.facts.batches} == {"2025-03-26"}
    definitions = {name for whole in protocols() for name in whole.definitions}
    assert set(STORE.semantics["unions"]) <= definitions
    assert {name for names in STORE.semantics["alternatives"].values() for name in names} <= definitions
    declared = {capability.name for whole in protocols() for capability in whole.capabilities}
    assert set(STORE.semantics["capabilities"].values()) <= declared
    assert {need["capability"] for need in STORE.semantics["needs"].values()} <= declared
    assert {name for pair in STORE.semantics["implied"].items() for name in pair} <= declared


@every_revision
def test_stated_results_are_defined_and_not_derivable_by_name(revision: str) -> None:
    whole = protocol(revision)
    stated: dict[str, str] = STORE.semantics["results"]
    for method in whole.methods:
        if method.name in stated:
            stem = method.definition.removesuffix("Request")
            assert stated[method.name] in whole.definitions
            assert not {f"{stem}Result", f"{stem}ResultResponse"} & set(whole.definitions), "the name rule would do"


def test_arguments_are_members_of_the_params() -> None:
    for method in STORE.semantics["arguments"]:
        wires = {field.wire for whole in protocols() for field in params_of(whole, method)}
        stated: list[str] = STORE.semantics["arguments"][method]
        assert set(stated) <= wires
        assert len(set(stated)) == len(stated)
        assert any(found.arguments == tuple(stated) for whole in protocols() for found in whole.methods)


def params_of(whole: Protocol, name: str) -> tuple[Field, ...]:
    """Return the fields of a method's params; none if there are no params or they are not one object."""
    method = next((method for method in whole.methods if method.name == name), None)
    params = whole.resolve(method.params) if method is not None and method.params is not None else None
    return params.fields if isinstance(params, Object) else ()


@every_revision
def test_lifecycle_messages_have_no_stub_and_ping_has_one(revision: str) -> None:
    lifecycle: dict[str, str] = STORE.semantics["lifecycle"]
    for method in protocol(revision).methods:
        assert method.lifecycle == lifecycle.get(method.name, "")
        for side in method.senders:
            assert sends(method, side) == (method.name not in lifecycle)
    assert "ping" not in lifecycle


def test_shared_inline_types_have_one_class_for_several_fields() -> None:
    for member in STORE.semantics["shared"]:
        name = STORE.semantics["shared"][member]
        wholes = [whole for whole in protocols() if name in whole.definitions and whole.definitions[name].inline]
        users = [
            field for whole in wholes for _, field in fields(whole) if (field.wire, field.type) == (member, Ref(name))
        ]
        assert len(users) > 1


def fields(whole: Protocol) -> Iterator[tuple[str, Field]]:
    """Yield the fields of all objects, with the names of the objects."""
    for name, definition in whole.definitions.items():
        if isinstance(definition.type, Object):
            yield from ((name, field) for field in definition.type.fields)


def types(whole: Protocol) -> Iterator[tuple[str, Type]]:
    """Yield the types of all definitions and members, with their names: `Role`, `ToolChoice.mode`."""
    yield from ((name, definition.type) for name, definition in whole.definitions.items())
    yield from ((f"{name}.{field.wire}", field.type) for name, field in fields(whole))


def test_orders_have_the_values_of_an_enumeration_in_an_order_that_no_schema_has() -> None:
    orders = STORE.semantics["orders"]
    assert orders
    for name, order in orders.items():
        found = [(whole.revision, type) for whole in protocols() for one, type in types(whole) if one == name]
        assert found
        assert all(type == Const(tuple(order)) for _, type in found)
        semantics = {**STORE.semantics, "orders": {}}
        effective = (replace(STORE.effective(revision), semantics=semantics) for revision, _ in found)
        read = [type for one in effective for known, type in types(build(one)) if known == name]
        assert len(read) == len(found)
        assert all(isinstance(type, Const) and sorted(map(str, type.values)) == sorted(order) for type in read)
        assert Const(tuple(order)) not in read
    assert tuple(orders["LoggingLevel"]) == LEVELS


def test_defaults_fill_a_required_field() -> None:
    for key in STORE.semantics["defaults"]:
        owner, _, wire = key.rpartition(".")
        found = [field for whole in protocols() for name, field in fields(whole) if owner in ("", name)]
        stated = (wire, True, STORE.semantics["defaults"][key])
        assert stated in [(field.wire, field.required, field.default) for field in found]


def test_error_codes_are_distinct_and_expire_with_a_known_revision() -> None:
    errors: dict[str, dict[str, Any]] = STORE.semantics["errors"]
    assert len({entry["code"] for entry in errors.values()}) == len(errors)
    assert {entry["until"] for entry in errors.values() if "until" in entry} < set(REVISIONS)


def test_deprecations_name_definitions_and_members_of_their_revision() -> None:
    for notice in NOTICES:
        assert notice["since"] in REVISIONS
        whole = protocol(notice["since"])
        known = {name: definition.deprecated for name, definition in whole.definitions.items()}
        known |= {f"{name}.{field.wire}": field.deprecated for name, field in fields(whole)}
        for name in notice["definitions"]:
            assert known[name] == f"since {notice['since']}: {notice['instead']}"


def test_nothing_is_deprecated_twice() -> None:
    names = [name for notice in NOTICES for name in notice["definitions"]]
    assert len(set(names)) == len(names)


def test_messages_of_deprecated_params_are_deprecated() -> None:
    for whole in protocols():
        for method in whole.methods:
            params = whole.definitions.get(f"{method.definition}Params")
            if params is not None and not params.inline:
                assert bool(method.deprecated) == bool(params.deprecated), method.name


@every_revision
def test_a_revision_with_initialize_is_stateful_and_without_it_stateless(revision: str) -> None:
    definitions: dict[str, Any] = json.loads((STORE.root / revision / "schema.json").read_text("utf-8"))["$defs"]
    methods = {definition.get("properties", {}).get("method", {}).get("const") for definition in definitions.values()}
    era = "stateful" if "initialize" in methods else "stateless"
    assert STORE.pin(revision).era == era
    assert protocol(revision).era == era


@every_revision
def test_pins_match_the_schema_files(revision: str) -> None:
    pin = STORE.pin(revision)
    assert STORE.is_pinned(revision)
    assert pin.status in ("released", "draft")
    assert date.fromisoformat(pin.date).isoformat() == pin.date


def test_there_is_a_folder_for_each_revision() -> None:
    folders = sorted(path.name for path in STORE.root.iterdir() if path.is_dir())
    assert folders == sorted([*REVISIONS, "callers", "extensions", "providers"])


def test_shortcuts_are_members_of_the_runtime() -> None:
    questions = {method.name for whole in protocols() for method in whole.methods if "server" in method.senders}
    owners = {"Context": Context, "Client": Client}
    for method, name in STORE.semantics["shortcuts"].items():
        owner, _, member = name.partition(".")
        assert hasattr(owners[owner], member), name
        assert method in questions or owner == "Client"
