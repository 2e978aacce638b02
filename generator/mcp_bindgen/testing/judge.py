"""Judge of messages: holds each message against the JSON Schema of a revision, and names place and rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.model import Object, Ref
from mcp_bindgen.spec import EffectiveSchema, Schema, Store, extend, external
from mcp_bindgen.spec.errors import first_line
from mcp_bindgen.spec.json import is_object, join
from mcp_bindgen.spec.references import as_uri, reference, with_uris
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics

_ENVELOPES = {
    "request": ("JSONRPCRequest",),
    "notification": ("JSONRPCNotification",),
    "result": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError"),
}
"""Kind of a message -> its definitions of JSON-RPC; the first one that a revision has applies."""

_CONSTANTS = ("const", "enum")


@dataclass(frozen=True)
class Violation:
    """Place where a message breaks the schema.

    Attributes:
        pointer: JSON Pointer into the message (RFC 6901).
        rule: The definitions that do not accept the value and the keyword of the closest error, e.g.
            `CallToolRequest: required`; or the rule of JSON-RPC.
        reason: The reason in a sentence.
    """

    pointer: str
    rule: str
    reason: str

    def __str__(self) -> str:
        """Return the violation in one line."""
        return f"{self.pointer or '(message)'}: {self.reason} [{self.rule}]"


class MessageJudge:
    """Judge of the messages of a revision.

    Args:
        protocol: The revision, with its extensions.
        definitions: Definition name -> JSON Schema.
    """

    def __init__(self, protocol: Protocol, definitions: Mapping[str, Schema]) -> None:
        self._protocol = protocol
        self._definitions = {name: with_uris(schema) for name, schema in definitions.items()}
        self._methods = {method.name: method for method in protocol.methods}
        self._validators: dict[str, Draft202012Validator] = {}

    def violations(self, message: Mapping[str, Any], requested: str | None) -> list[Violation]:
        """Return the violations of a message.

        Args:
            message: One message; a batch is judged message by message.
            requested: Method of the request, if the message is a response.
        """
        kind = kind_of(message)
        if kind is None:
            return [Violation("", "JSON-RPC", "neither a request, nor a notification, nor a response")]
        envelope = [name for name in _ENVELOPES[kind] if name in self._definitions][:1] or ["JSONRPCMessage"]
        found = self._check(message, "", *envelope)
        method = self._methods.get(str(message.get("method") if "method" in message else requested))
        if found or method is None:
            return found
        if "method" in message:
            return self._check(message, "", method.definition)
        if kind == "result":
            names = [type.name for type in (method.result, *method.alternatives) if isinstance(type, Ref)]
            names += self._protocol.added_answers(method.name)
            return self._check(message["result"], "/result", *self._meant(names, message["result"]))
        return []

    def _meant(self, names: list[str], result: Any) -> list[str]:
        """Return the definitions that a result is meant for, by the members whose values tell them apart."""
        stated = [self._stated(name) for name in names]
        wires = [wire for wire in stated[0] if all(wire in one for one in stated)] if stated else []
        if not is_object(result) or not any(wire in result for wire in wires):
            return names
        fits = (all(one[wire] == result.get(wire, one[wire]) for wire in wires) for one in stated)
        return [name for name, is_meant in zip(names, fits, strict=True) if is_meant] or names

    def _stated(self, name: str) -> dict[str, Any]:
        """Return the members of a definition with one value, which is in the model."""
        definition = self._protocol.definitions.get(name)
        fields = definition.type.fields if definition is not None and isinstance(definition.type, Object) else ()
        return {field.wire: field.stated for field in fields if field.stated is not None}

    def _check(self, value: Any, pointer: str, *names: str) -> list[Violation]:
        """Return the violation of a value that none of the definitions accepts; report the closest error."""
        known = [name for name in names if name in self._definitions]
        try:
            errors = [next(iter(self._validator(name).iter_errors(value)), None) for name in known]
        except UnicodeEncodeError:
            return [Violation(pointer, "JSON", "a text has half of a character, which no UTF-8 has")]
        found = [_closest(error) for error in errors if error is not None]
        if len(found) < len(errors) or not found:
            return []
        error = max(found, key=lambda one: len(one.instance_path))
        rule = f"{' or '.join(known)}: {_keyword(error)}"
        return [Violation(join(pointer, *error.instance_path), rule, first_line(error.message))]

    def _validator(self, name: str) -> Draft202012Validator:
        if name not in self._validators:
            schema = {"$ref": as_uri(reference(name)), "$defs": self._definitions}
            self._validators[name] = Draft202012Validator(schema, offline=True)
        return self._validators[name]


def kind_of(message: Mapping[str, Any]) -> str | None:
    """Return `request`, `notification`, `result` or `error`; `None` for another object."""
    if "method" in message:
        return "request" if "id" in message else "notification"
    return next((kind for kind in ("result", "error") if kind in message), None)


def _closest(error: ValidationError) -> ValidationError:
    """Return the error of the member of a union that the value was meant for, else the error itself.

    That is a member whose constants fit; else the member that got furthest into the value.
    """
    kind = error.kind
    if not isinstance(kind, ValidationErrorKind.AnyOf | ValidationErrorKind.OneOfNotValid):
        return error
    branches = [branch for branch in kind.context if branch]
    tagged = [branch for branch in branches if not any(_keyword(one) in _CONSTANTS for one in branch)]
    if len(tagged) == 1:
        return _closest(tagged[0][0])
    deeper = [one for branch in branches if len((one := _closest(branch[0])).instance_path) > len(error.instance_path)]
    return max(deeper, key=lambda one: len(one.instance_path), default=error)


def _keyword(error: ValidationError) -> str:
    path = [step for step in error.schema_path if isinstance(step, str)]
    return path[-1] if path else "false"


@cache
def judge_of(revision: str, extensions: tuple[str, ...] = (), schema: Path | None = None) -> MessageJudge:
    """Return the judge of a revision.

    Args:
        revision: The revision.
        extensions: Ids of the extensions in use; ids without a schema are ignored.
        schema: Schema file, if the revision is not part of mcp-bindgen; its facts are in a file beside it with the
            suffix `.toml`.

    Raises:
        BadInput: There is no such revision, or the file is no schema.
    """
    source = _effective(revision, schema)
    if extensions:
        source = extend(source, *(one for one in Store().extensions_of(source) if one.id in extensions))
    return MessageJudge(build(source), source.definitions)


def _effective(revision: str, schema: Path | None) -> EffectiveSchema:
    if schema is None:
        return Store().effective(revision)
    store, own = Store(), schema.with_suffix(".toml")
    facts = merge_semantics(store.semantics, read_semantics(own)) if own.exists() else store.semantics
    return external(schema, revision, facts, store.errata)
