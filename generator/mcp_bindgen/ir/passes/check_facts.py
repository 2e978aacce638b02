"""Refuse facts of an extension without an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.effective import ExtensionSchema
from mcp_bindgen.spec.json import join

from ..model import Field, Map, Method, Object, Ref, Scalar
from .build_state import BuildState
from .collect_extensions import type_named
from .collect_methods import method_of

_USES: Mapping[str, Callable[[Method, Any], object]] = {
    "names": lambda method, _: method.named_by,
    "header_params": lambda method, _: method.header_params,
    "filters": lambda method, entry: (
        method.kind == "notification" and method.filter and (method.filter.compares or "compares" not in entry)
    ),
    "lifecycle": lambda method, _: method.lifecycle,
    "capabilities": lambda method, entry: entry in {*dict(method.capabilities).values(), method.setting},
    "arguments": lambda method, entry: list(method.arguments) == entry,
}
"""Table of facts about methods -> test whether an entry has an effect on a method."""


def check_facts(state: BuildState) -> BuildState:
    """Check that each fact of the extensions has an effect.

    Raises:
        BadInput: A fact has none; the error names the file of the facts and the entry.
    """
    for extension in state.source.extensions:
        for table, key, wrong in _unused(extension, state):
            raise BadInput(
                f"{key!r} says nothing about {extension.id}: {wrong}",
                file=extension.stated_in,
                pointer=join("", table, key),
                fix="correct or remove it",
            )
    return state


def _unused(extension: ExtensionSchema, state: BuildState) -> Iterator[tuple[str, str, str]]:
    """Return table and key of each fact that is not used, and why."""
    facts = extension.semantics
    own = {name: method for name, method in state.methods.items() if method.origin == extension.id}
    for side, name in facts["extension"].get("settings", {}).items():
        if name not in state.definitions or not isinstance(state.resolve(Ref(name)), Object | Map):
            yield "extension", "settings", f"the settings of the {side} are no object {name}"
    for name in facts["roles"]:
        definition = state.definitions.get(name)
        if definition is None or definition.origin != extension.id or method_of(definition) is None:
            yield "roles", name, "it is no message in its schema"
    for name, added in facts["extends"].items():
        if name not in state.of_core() or state.definitions.get(name) is None:
            yield "extends", name, "it is no definition of core"
        elif state.object_of(Ref(added)) is None or state.definitions[added].origin != extension.id:
            yield "extends", name, f"there is no object {added} in its schema"
        elif shared := _wires(name, state) & _wires(added, state):
            yield "extends", name, f"{name} has {min(shared)!r} already"
    yield from _unused_values(extension, own, state)
    for name, needed in facts["cache_invalidations"].items():
        if name not in own or not {*needed} <= state.methods.keys():
            yield "cache_invalidations", name, "there are no such methods"
    for key, holders in facts["meta"].items():
        if not holders:
            yield "meta", key, "it stands nowhere"
        for holder, type in holders.items():
            if not isinstance(type_named(type), Scalar) and type not in state.definitions:
                yield "meta", key, f"there is no type {type}"
            if state.field_of(Ref(holder), "_meta") is None:
                yield "meta", key, f"{holder} has no '_meta'"
    for key in facts["defaults"]:
        if not any(_takes(field, name, key) for name, field in _fields(extension, state)):
            yield "defaults", key, "no definition of its schema requires such a member"
    for index, notice in enumerate(facts["deprecations"]):
        gone = [name for name in notice["definitions"] if state.origins.get(name) != extension.id]
        if gone:
            yield "deprecations", str(index), f"there is no {gone[0]} in its schema"
    known = {error.code for error in state.errors if error.origin == extension.id}
    for name, entry in facts["errors"].items():
        if entry["code"] not in known:
            yield "errors", name, "core has that code"


def _unused_values(
    extension: ExtensionSchema, own: Mapping[str, Method], state: BuildState
) -> Iterator[tuple[str, str, str]]:
    """Return the facts about methods that are not used."""
    facts = extension.semantics
    for name, result in facts["results"].items():
        if name not in own or own[name].result != Ref(result):
            yield "results", name, f"no such method of it is answered by {result}"
    for name, types in facts["alternatives"].items():
        if name not in state.methods:
            yield "alternatives", name, "there is no such method"
        for type in types:
            if state.origins.get(type) != extension.id:
                yield "alternatives", name, f"there is no {type} in its schema"
    for table, used in _USES.items():
        for name, entry in facts[table].items():
            if name not in own or not used(own[name], entry):
                yield table, name, "no method of it has what it names"
    for key, entry in facts["needs"].items():
        name = key.rpartition(".")[0]
        if name not in own or entry["capability"] not in {need.capability for need in own[name].needs}:
            yield "needs", key, "no method of it has what it names"
    for name in facts["opt_in"]:
        if not any(Ref(name) in method.alternatives and method.opt_in for method in own.values()):
            yield "opt_in", name, "no method of it is answered by that where it is asked for"


def _fields(extension: ExtensionSchema, state: BuildState) -> Iterator[tuple[str, Field]]:
    for name, definition in state.definitions.items():
        if definition.origin == extension.id and isinstance(definition.type, Object):
            yield from ((name, field) for field in definition.type.fields)


def _takes(field: Field, owner: str, key: str) -> bool:
    return field.required and field.filled is not None and key in (field.wire, f"{owner}.{field.wire}")


def _wires(name: str, state: BuildState) -> set[str]:
    return {field.wire for field in state.fields_of(Ref(name))}
