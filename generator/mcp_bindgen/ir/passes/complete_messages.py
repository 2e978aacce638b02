"""Add the common members of core messages to those of extensions: `_meta`, and `resultType` of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.json_schema.keywords import PROSE
from mcp_bindgen.spec import Schema
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.keywords import method_of, without_prose
from mcp_bindgen.spec.references import reference, target

from ..senders import kind_of
from .build_state import BuildState

_BASES = {"request": "RequestParams", "notification": "NotificationParams"}
_RESULT = "Result"


def complete_messages(state: BuildState) -> BuildState:
    """Add the members of core's `RequestParams`, `NotificationParams` and `Result` to messages of extensions.

    The own type of such a member holds if it is narrower than any object or any string.
    """
    schemas = dict(state.schemas)
    for extension in state.source.extensions:
        facts = extension.semantics
        answers = {*facts["results"].values(), *(name for names in facts["alternatives"].values() for name in names)}
        for name, role in facts["roles"].items():
            method = method_of(schemas.get(name, {}))
            if role == "none" or method is None:
                continue
            kind = kind_of(name, method)
            _complete_params(name, _BASES[kind], schemas, state.origins)
            if kind == "request":
                answers.add(f"{name.removesuffix('Request')}Result")
        for name in sorted(answers):
            _complete(name, _RESULT, schemas, state.origins)
    return replace(state, schemas=schemas)


def _complete_params(message: str, base: str, schemas: dict[str, Schema], origins: Mapping[str, str]) -> None:
    """Complete the params of a message, inline or in a definition of their own; core's are as they should be."""
    if base not in schemas:
        return
    schema = schemas[message]
    params: Any = schema["properties"].get("params", {})
    required = set(schema.get("required", ()))
    if is_object(params) and "$ref" in params:
        _complete(target(params["$ref"]), base, schemas, origins)
        return
    if _is_general(params):
        prose = {keyword: params[keyword] for keyword in PROSE if is_object(params) and keyword in params}
        params = {"$ref": reference(base), **prose}
        required |= {"params"} if schemas[base].get("required") else set()
    else:
        params = _merged(schemas[base], params)
    properties = {**schema["properties"], "params": params}
    schemas[message] = {**schema, "properties": properties, "required": sorted(required)}


def _complete(name: str, base: str, schemas: dict[str, Schema], origins: Mapping[str, str]) -> None:
    """Complete a definition of an extension; of a union, each of its members."""
    if name not in origins or base not in schemas:
        return
    schema = schemas[name]
    if "$ref" in schema:
        _complete(target(schema["$ref"]), base, schemas, origins)
        return
    union = next((keyword for keyword in ("anyOf", "oneOf") if keyword in schema), None)
    if union is None:
        schemas[name] = _merged(schemas[base], schema)
        return
    for member in _references(schema[union]):
        _complete(member, base, schemas, origins)
    inline = [_merged(schemas[base], one) if is_object(one) and "$ref" not in one else one for one in schema[union]]
    schemas[name] = {**schema, union: inline}


def _references(members: list[Any]) -> Iterator[str]:
    return (target(member["$ref"]) for member in members if is_object(member) and "$ref" in member)


def _merged(base: Schema, own: Schema) -> Schema:
    """Return an object with the members of both."""
    ours: Mapping[str, Any] = base.get("properties", {})
    theirs: Mapping[str, Any] = own.get("properties", {})
    more = {name: member for name, member in theirs.items() if name not in ours or not _is_general(member)}
    required = {*base.get("required", ()), *own.get("required", ())}
    merged = {**own, "type": "object", "properties": {**ours, **more}}
    return {**merged, "required": sorted(required)} if required else merged


def _is_general(member: Any) -> bool:
    return not is_object(member) or _says(member) <= {"type", "additionalProperties"}


def _says(schema: Schema) -> set[str]:
    return {keyword for keyword, value in without_prose(schema).items() if value not in (True, {}, [])}
