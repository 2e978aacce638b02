"""Collect errors, facts and additions of extensions beside definitions and methods; refuse facts without an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.effective import ExtensionSchema
from mcp_bindgen.spec.json import join
from mcp_bindgen.spec.revisions import has_reached

from ..model import OTHER_SIDE, ErrorCode, Extension, Facts, Field, Map, MetaKey, Method, Object, Ref, Scalar, Type
from .build_state import BuildState
from .collect_methods import method_of


def collect_facts(state: BuildState) -> BuildState:
    """Fill in the facts: keys of `_meta` from the schema, the others from `semantics.toml`."""
    semantics, revision = state.semantics, state.source.revision
    utilities = [(role, name) for role, name in semantics["utilities"].items() if name in state.methods]
    cached = {name: tuple(_cached(state, methods)) for name, methods in semantics["cache_invalidations"].items()}
    facts = Facts(
        utilities=tuple(utilities),
        meta_keys=tuple(sorted(_meta_keys(state))),
        cache_invalidations=tuple(
            (name, methods) for name, methods in cached.items() if methods and name in state.methods
        ),
        batches=any(name in state.definitions for name in semantics["batches"].values()),
        unnamed_over_http=revision == semantics["transports"].get("unnamed-revision"),
        trace_context=tuple(semantics["trace_context"]),
        stream_polling=_since(revision, semantics["transports"].get("stream-polling")),
        argument_errors_in_results=_since(revision, semantics["behaviour"].get("argument-errors-in-results")),
        draft=state.source.draft,
        missing=tuple(_missing(state)),
    )
    return replace(state, facts=facts)


def _missing(state: BuildState) -> Iterator[str]:
    """Yield the definitions without which no connection can begin."""
    handshake: Mapping[str, str] = state.semantics["handshake"].get(state.source.era, {})
    yield from (definition for method, definition in handshake.items() if method not in state.methods)
    introductions = [name for names in state.semantics["introductions"].values() for name in names]
    yield from (name for name in introductions if name not in state.definitions)


def _since(revision: str, first: str | None) -> bool:
    """Return True if `revision` is not before `first`."""
    return first is not None and has_reached(revision, first)


def _cached(state: BuildState, methods: list[str]) -> list[str]:
    """Return the methods with cacheable results, of the given ones."""
    known = [state.methods[name] for name in methods if name in state.methods]
    return [method.name for method in known if state.field_of(method.result, "ttlMs")]


def _meta_keys(state: BuildState) -> set[str]:
    """Return the members of the core with the prefix of a vendor."""
    objects = [definition.type for definition in state.of_core().values() if isinstance(definition.type, Object)]
    return {field.wire for type in objects for field in type.fields if "/" in field.wire}


def collect_errors(state: BuildState) -> BuildState:
    """Fill in the error codes: constants of error definitions, and the codes of `semantics.toml`."""
    errors: dict[int, ErrorCode] = {}
    for origin in ("", *(extension.id for extension in state.source.extensions)):
        for name, entry in state.source.facts(origin)["errors"].items():
            if not _is_past(state.source.revision, until := entry.get("until", "")):
                instead = entry.get("instead", "")
                error = ErrorCode(name, entry["code"], None, entry["doc"], until, instead, origin)
                errors.setdefault(entry["code"], error)
    for definition in sorted(state.definitions.values(), key=lambda one: one.origin):
        code = _code(definition.type, state)
        if code is None or definition.inline or (code in errors and definition.origin != errors[code].origin):
            continue
        if code in errors:
            errors[code] = replace(errors[code], definition=definition.name)
        else:
            name = definition.name.removesuffix("Error") or definition.name
            errors[code] = ErrorCode(name, code, definition.name, definition.doc, origin=definition.origin)
    return replace(state, errors=tuple(errors[code] for code in sorted(errors)))


def _is_past(revision: str, until: str) -> bool:
    """Return True if `revision` is later than `until`."""
    return until != "" and revision != until and has_reached(revision, until)


def _code(type: Type, state: BuildState) -> int | None:
    """Return the constant of `code`, or of `error.code` in the definition of a whole error response."""
    error = state.field_of(type, "error")
    fields = [state.field_of(part, "code") for part in (type, error.type if error is not None else None)]
    values = [field.constant for field in fields if field is not None]
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def collect_extensions(state: BuildState) -> BuildState:
    """Fill in the extensions, in the order in which they were laid over core."""
    return replace(state, extensions=tuple(_extension(one, state) for one in state.source.extensions))


def _extension(source: ExtensionSchema, state: BuildState) -> Extension:
    facts = source.semantics
    head: Mapping[str, Any] = facts["extension"]
    of_core = {name: method for name, method in state.methods.items() if not method.origin}
    return Extension(
        id=source.id,
        version=source.version,
        name=source.module,
        digest=source.digest,
        options=tuple(head.get("options", {}).items()),
        settings=tuple((side, name) for side in OTHER_SIDE if (name := head.get("settings", {}).get(side)) is not None),
        meta_keys=tuple(_keys_of_meta(facts["meta"])),
        alternatives=tuple((name, tuple(types)) for name, types in facts["alternatives"].items() if name in of_core),
        cache_invalidations=tuple((name, tuple(methods)) for name, methods in facts["cache_invalidations"].items()),
        extends=tuple(facts["extends"].items()),
        doc=head.get("doc", ""),
    )


def _keys_of_meta(table: Mapping[str, Mapping[str, str]]) -> Iterator[MetaKey]:
    """Yield the keys of `_meta`, one for each type of a key."""
    for key, holders in sorted(table.items()):
        for name in dict.fromkeys(holders.values()):
            places = tuple(holder for holder, type in holders.items() if type == name)
            yield MetaKey(key, type_named(name), places)


def type_named(name: str) -> Type:
    """Return the type that facts call `name`: one of JSON's scalars, else a definition."""
    return Scalar(cast(Any, name)) if name in _SCALARS else Ref(name)


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
