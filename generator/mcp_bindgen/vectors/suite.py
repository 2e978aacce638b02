"""The suite: vectors of all definitions of revisions and extensions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry

from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.examples import Unfit
from mcp_bindgen.ir.model import Ref, Union
from mcp_bindgen.spec import EffectiveSchema, Pin, Schema, Store, extend
from mcp_bindgen.spec.document import normalise
from mcp_bindgen.spec.keywords import DIALECT
from mcp_bindgen.spec.references import as_uri, reference, with_uris

from .cases import STILL, Case, cases
from .facts import Facts, Override, read_facts
from .format import FORMAT, SUITE, Tag, Vector, VectorFile, as_text
from .places import Places

_TAGS: Mapping[str, Tag] = {"format": "format", "large": "limit", "unknown": "extra", "meta-key": "extra"}


def files_of(store: Store, names: Sequence[str] = ()) -> dict[str, str]:
    """Return path -> text of the vector files of revisions and extensions.

    Args:
        store: The schemas.
        names: Revisions such as `2025-11-25` and extensions such as `tasks`; by default all.

    Raises:
        BadInput: A name is unknown, or a file in the store is damaged.
    """
    return {f"{file.name}.json": as_text(file) for file in vector_files(store, names)}


def vector_files(store: Store, names: Sequence[str] = ()) -> Iterator[VectorFile]:
    """Yield the vector files of revisions and extensions, as `files_of`."""
    facts = read_facts(store.root)
    pins = [store.any_pin(name) for name in names] or [*store.pins.values(), *store.extension_pins]
    for pin in pins:
        core = store.effective(store.core(pin) if pin.id else pin.name)
        published = normalise(store.structure(core.revision))["$defs"]
        if pin.id:
            extension = store.extension_schema(pin, core)
            own = store.structure(pin)["$defs"]
            yield from _files(extend(core, extension), {**published, **own}, list(extension.definitions), facts, pin)
        else:
            yield from _files(core, published, list(core.definitions), facts, pin)


def _files(
    schema: EffectiveSchema, published: Mapping[str, Schema], names: Iterable[str], facts: Facts, pin: Pin
) -> Iterator[VectorFile]:
    protocol = build(schema)
    makers = _Maker(protocol, Judge(schema.definitions), Judge(published), facts)
    messages = {method.definition: method for method in protocol.methods}
    digest = next((one.digest for one in schema.extensions), schema.digest)
    for name in sorted(names):
        try:
            vectors = makers.vectors(name)
        except Unfit:
            continue  # a definition without a finite document has no vectors
        method = messages.get(name)
        shapes = {_shape(protocol, one) for one in _members(protocol, name) or [name]}
        kind, envelope = shapes.pop() if len(shapes) == 1 else ("", False)
        yield VectorFile(
            FORMAT,
            SUITE,
            schema.revision,
            name,
            digest,
            extension=pin.label if pin.id else "",
            method=method.name if method else "",
            kind=kind,
            envelope=envelope,
            senders=method.senders if method else (),
            vectors=vectors,
        )


class _Maker:
    """Maker of the vectors of one revision."""

    def __init__(self, protocol: Protocol, effective: Judge, published: Judge, facts: Facts) -> None:
        self._protocol = protocol
        self._effective, self._published = effective, published
        self._facts = facts
        self._places = Places(protocol, facts.values, facts.always)

    def vectors(self, name: str) -> tuple[Vector, ...]:
        """Return the vectors of a definition, each document and each id once."""
        found: dict[str, Vector] = {}
        seen: set[str] = set()
        for vector in (*self._stated(name), *(self._judged(name, case) for case in cases(self._places, name))):
            if vector.id not in found and vector.sent not in seen:
                found[vector.id] = vector
                seen.add(vector.sent)
        return tuple(found.values())

    def _judged(self, name: str, case: Case) -> Vector:
        document = json.loads(case.text) if case.text else case.document
        accepted = self._effective.accepts(name, document)
        is_damage = case.rule in ("required", "type", "null", "constant", "beyond", "closed")
        vector = Vector(
            id=case.id,
            verdict="valid" if accepted else "invalid",
            schema=accepted,
            pointer=case.place.pointer,
            rule=case.rule,
            reason=STILL.format(case.reason) if accepted and is_damage else case.reason,
            document=case.document,
            text=case.text or ("null" if case.document is None else ""),
            tags=(_TAGS[case.rule],) if case.rule in _TAGS else (),
        )
        tolerated = self._facts.tolerated.get(case.rule)
        if tolerated and (accepted if case.rule == "format" else bool(case.wrote) and not accepted):
            reason = tolerated.format(case.place.tokens[-1] if case.place.tokens else name)
            vector = replace(vector, verdict="tolerated", reason=reason, wrote=case.wrote)
        if (override := self._override(case)) is not None and override.verdict != vector.verdict:
            vector = replace(
                vector, verdict=override.verdict, basis=override.basis, spec=override.spec, reason=override.reason
            )
        return self._completed(name, vector, document)

    def _override(self, case: Case) -> Override | None:
        for one in self._facts.override:
            is_here = case.rule in one.rules and case.place.pointer == one.pointer
            is_here &= one.value is None or case.place.variant != "" or case.place.value == one.value
            if is_here and (not one.revisions or self._protocol.revision in one.revisions):
                return one
        return None

    def _stated(self, name: str) -> Iterator[Vector]:
        """Yield the vectors of a definition that `vectors.toml` states."""
        for one in self._facts.document:
            if one.definition != name or (one.revisions and self._protocol.revision not in one.revisions):
                continue
            document = json.loads(one.text)
            accepted = "lone-surrogate" not in one.id and self._effective.accepts(name, document)
            rule, _, pointer = one.id.partition("#")
            vector = Vector(
                id=one.id,
                verdict=one.verdict or ("valid" if accepted else "invalid"),
                schema=accepted,
                pointer=pointer,
                rule=rule,
                reason=one.reason,
                text=one.text,
                basis=one.basis,
                spec=one.spec,
                reads_as=one.reads_as,
                wrote=tuple(map(json.loads, one.wrote)),
                tags=one.tags,
            )
            yield self._completed(name, vector, document)

    def _completed(self, name: str, vector: Vector, document: Any) -> Vector:
        """Return a vector with the verdict of the published schema, the pages of the revision, and its reader."""
        if vector.rule == "lone-surrogate":
            return vector
        published = self._published.accepts(name, document)
        members = _members(self._protocol, name) if vector.verdict == "valid" else []
        readers = [member for member in members if self._effective.accepts(member, document)]
        pages = self._facts.pages.get(self._protocol.revision, {})
        return replace(
            vector,
            spec=tuple(pages.get(one, one) for one in vector.spec),
            published=published if published != vector.schema else None,
            reads_as=vector.reads_as or (readers[0] if len(readers) == 1 else ""),
        )


def _shape(protocol: Protocol, name: str) -> tuple[str, bool]:
    """Return the kind of message that a definition is, empty for none, and whether it has the members of JSON-RPC."""
    if protocol.field_of(Ref(name), "method") is None:
        return "", False
    kind = "notification" if name.endswith("Notification") else "request"
    return kind, protocol.field_of(Ref(name), "jsonrpc") is not None


def _members(protocol: Protocol, name: str) -> list[str]:
    """Return the definitions that a union consists of; none for another type."""
    type = protocol.resolve(Ref(name))
    return [member.name for member in type.members if isinstance(member, Ref)] if isinstance(type, Union) else []


_URN = "urn:mcp-bindgen:schema"


class Judge:
    """Validator of the documents of one schema.

    Args:
        definitions: Definition name -> JSON Schema.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._validators: dict[str, Draft202012Validator] = {}

    @cached_property
    def _registry(self) -> Registry:
        definitions = {name: with_uris(schema) for name, schema in self._definitions.items()}
        return Registry([(_URN, {"$schema": DIALECT, "$defs": definitions})])

    def accepts(self, name: str, document: Any) -> bool:
        """Return whether a definition accepts a document; false for a name that is not in the schema."""
        if name not in self._definitions:
            return False
        if name not in self._validators:
            schema = {"$ref": _URN + as_uri(reference(name))}
            self._validators[name] = Draft202012Validator(schema, registry=self._registry)
        return self._validators[name].is_valid(document)
