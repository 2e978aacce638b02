"""The model of a revision as a document: written as JSON, read back, and described by a JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.json_form import List
from mcp_bindgen.ir.model import Ref, Type, Union, parts, references
from mcp_bindgen.spec.errors import BadInput, locating
from mcp_bindgen.spec.json import is_array, is_object, join, step
from mcp_bindgen.spec.keywords import DIALECT
from mcp_bindgen.spec.sources import Source

from .differences import Plan

FORMAT = "mcp-bindgen-model/1"
"""The value of the member `format`; its number changes when a reader of the old format would misread the new one."""

_ALIASES = {"wire": "name", "fallback": "default"}
"""Attribute -> member in JSON, where the names differ."""

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Model:
    """The model of a revision: the protocol, and its conversions to the adjacent revisions.

    Attributes:
        format: The version of this format.
        protocol: The revision.
        bridges: The conversions from this revision to adjacent ones.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    format: Literal["mcp-bindgen-model/1"] = field(default="mcp-bindgen-model/1", kw_only=True)
    protocol: Protocol
    bridges: List[Plan] = ()


@cache
def _adapter() -> TypeAdapter[Model]:
    return TypeAdapter(Model)


def write(model: Model) -> str:
    """Return a model as JSON; equal models give equal text."""
    data = _adapter().dump_python(model, mode="json", by_alias=True)
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def read(source: Source) -> Model:
    """Read a model that `write` returned.

    Raises:
        BadInput: The source is not such a model; the error names file and pointer.
    """
    with locating(source.label):
        try:
            document = json.loads(source.content)
        except ValueError as error:
            raise BadInput(f"is not JSON: {error}", fix="print a model with: mcp-bindgen model REVISION") from None
        found = document.get("format") if is_object(document) else None
        if found != FORMAT:
            raise BadInput(
                f"the format is {found!r}, not {FORMAT!r}",
                pointer="/format",
                fix="print the model again with this version: mcp-bindgen model REVISION",
            )
        try:
            model = _adapter().validate_json(source.content, by_alias=True, by_name=False)
        except ValidationError as error:
            raise _invalid(document, error) from None
        for pointer, message in _broken(model.protocol):
            raise BadInput(message, pointer=f"/protocol{pointer}", fix="print the model again")
    return model


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of printed models, with a description of each member."""
    found = described(_adapter().json_schema(by_alias=True), lambda attribute: _ALIASES.get(attribute, attribute))
    return {"$schema": DIALECT, "title": "Model of an MCP revision", **found}


def described(schema: Any, member: Callable[[str], str]) -> Any:
    """Return a schema of pydantic in plain JSON Schema: tags required, and members described beside their types.

    Args:
        schema: The schema; descriptions are docstrings with a section of attributes.
        member: Returns the name in JSON of an attribute.
    """
    if is_array(schema):
        return [described(item, member) for item in schema]
    if not is_object(schema):
        return schema
    found = {
        key: {name: described(inner, member) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else described(value, member)
        for key, value in schema.items()
        if key not in ("title", "default", "discriminator", "readOnly")
    }
    tags = {"kind", "format"} & schema.get("properties", {}).keys()
    if "required" in schema or tags:
        always = {name for name in tags if "const" in schema["properties"][name]}
        found["required"] = sorted({*schema.get("required", ()), *always})
    words, _, attributes = schema.get("description", "").partition("\n\nAttributes:\n")
    for name, text in _ATTRIBUTE.findall(attributes):
        if (property := found["properties"].get(member(name))) is not None:
            property["description"] = " ".join(text.split())
    return {**found, "description": " ".join(words.split())} if words else found


# --- errors ---------------------------------------------------------------------------------------------------


def _invalid(document: Any, error: ValidationError) -> BadInput:
    """Return the first error of a document with the pointer to it."""
    first = error.errors(include_url=False)[0]
    node, pointer, lost = document, "", ""
    for part in first["loc"]:
        try:
            node, pointer = step(node, str(part)), join(pointer, part)
        except KeyError:
            lost = str(part)
    message = f"the member {lost!r} is missing" if first["type"] == "missing" else first["msg"]
    return BadInput(message, pointer=pointer, fix="print the model again: mcp-bindgen model REVISION")


def _broken(protocol: Protocol) -> Iterator[tuple[str, str]]:
    """Yield pointer and message for each name in a protocol that no definition or member has."""
    for name, definition in protocol.definitions.items():
        if name != definition.name:
            yield join("/definitions", name, "name"), f"the name is {definition.name!r}"
    for pointer, name in _named_definitions(protocol):
        if name not in protocol.definitions:
            yield pointer, f"there is no definition {name!r}"
            return
    for pointer, type, name in _named_members(protocol):
        if not _has(protocol, type, name):
            yield pointer, f"there is no member {name!r} where this names one"


def _named_definitions(protocol: Protocol) -> Iterator[tuple[str, str]]:
    """Yield the names of definitions that the model uses, with pointers to the places that use them."""
    for name, definition in protocol.definitions.items():
        yield from ((join("/definitions", name), other) for other in references(definition.type))
    for index, method in enumerate(protocol.methods):
        here = join("/methods", index)
        types = [type for type in (method.params, *method.answers) if type is not None]
        yield from ((here, other) for type in types for other in references(type))
        yield here, method.definition
        if method.filter is not None:
            yield here, method.filter.definition
    for index, error in enumerate(protocol.errors):
        if error.definition is not None:
            yield join("/errors", index), error.definition
    for index, extension in enumerate(protocol.extensions):
        named = [name for _, name in extension.settings]
        named += [name for _, answers in extension.alternatives for name in answers]
        named += [name for pair in extension.extends for name in pair]
        named += [name for key in extension.meta_keys for name in (*references(key.type), *key.on)]
        yield from ((join("/extensions", index), name) for name in named)


def _named_members(protocol: Protocol) -> Iterator[tuple[str, Type | None, str]]:
    """Yield the members that the model names: pointer, the type that must have the member, and its name."""
    for name, definition in protocol.definitions.items():
        for union in _unions(definition.type):
            tagged = union.members if union.tag is not None else ()
            yield from ((join("/definitions", name), member, union.tag or "") for member in tagged)
    results = {method.name: method.result for method in protocol.methods}
    for index, method in enumerate(protocol.methods):
        here = join("/methods", index)
        named = [*method.arguments, method.opt_in, method.named_by, *(need.member for need in method.needs)]
        places = list[tuple[Type | None, str]]()
        if (headers := method.header_params) is not None:
            places += headers.places(protocol, results.get(headers.listed_by), method.params).values()
        if method.truncation is not None:
            places += method.truncation.places(protocol, method.result).values()
        yield from ((here, *place) for place in places)
        if method.filter is not None:
            yield here, Ref(method.filter.definition), method.filter.member
            named.append(method.filter.compares)
        yield from ((here, method.params, wire) for wire in named if wire is not None)


def _unions(type: Type) -> Iterator[Union]:
    if isinstance(type, Union):
        yield type
    for part in parts(type):
        yield from _unions(part)


def _has(protocol: Protocol, type: Type | None, wire: str) -> bool:
    """Return True if an object has a member, or one of the objects of a union."""
    found = protocol.resolve(type) if type is not None else None
    if isinstance(found, Union):
        return any(_has(protocol, member, wire) for member in found.members)
    return protocol.field_of(found, wire) is not None
