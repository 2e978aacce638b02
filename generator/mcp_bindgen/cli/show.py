"""`mcp-bindgen show`: print one definition of a revision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Definition, Object, references
from mcp_bindgen.protocol.text import describe
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.errors import suggestion

from .options import Json
from .output import decisions_about, print_facts, print_json
from .reading import Reading, RevisionName
from .terminal import say, write


def show(
    revision: RevisionName,
    name: Annotated[str, typer.Argument(help="A definition such as Tool, or a method such as tools/call.")],
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Print one definition: its meaning, its fields and its uses.

    Examples:

    `mcp-bindgen show 2025-11-25 Tool`

    `mcp-bindgen show 2026-07-28 tools/call --json`

    `mcp-bindgen show tasks CreateTaskResult`

    `mcp-bindgen show git:../specification@main:schema/draft/schema.json Tool`
    """
    protocol = reading.protocol(revision)
    fact = _fact(protocol, _find(protocol, name))
    if as_json:
        print_json(fact)
    else:
        _print(protocol, fact)


def _find(protocol: Protocol, name: str) -> Definition:
    names = {method.name: method.definition for method in protocol.methods} | {
        known: known for known in protocol.definitions
    }
    if name not in names:
        raise BadInput(
            f"MCP {protocol.revision} has no definition or method {name!r}",
            fix=suggestion(name, names, f"see: mcp-bindgen methods {protocol.revision}", most=3, cutoff=0.5),
        )
    return protocol.definitions[names[name]]


def _print(protocol: Protocol, fact: dict[str, Any]) -> None:
    origin = next((f"{one.id} {one.version} on " for one in protocol.extensions if one.id == fact["origin"]), "")
    say(f"{fact['name']} ({origin}MCP {protocol.revision}): {fact['type']}")
    if fact["doc"]:
        write(f"{fact['doc']}\n")
    if fact["deprecated"]:
        say(f"Deprecated {fact['deprecated']}.")
    if "fields" in fact:
        say()
        print_facts(
            fact["fields"],
            {"FIELD": "wire", "PYTHON": "name", "TYPE": "type", "REQUIRED": "required", "MEANING": "doc"},
        )
        say()
        say(f"Other members: {fact['otherMembers'] or 'none'}")
    if fact["usedBy"]:
        say(f"Used by: {', '.join(fact['usedBy'])}")


def _fact(protocol: PythonProtocol, definition: Definition) -> dict[str, Any]:
    type = definition.type
    fact: dict[str, Any] = {
        "name": definition.name,
        "revision": protocol.revision,
        "origin": definition.origin or None,
        "type": describe(type),
        "doc": definition.doc,
        "deprecated": definition.deprecated or None,
        "hoisted": definition.hoisted,
        "usedBy": [name for name, one in protocol.definitions.items() if definition.name in references(one.type)],
        "decisions": decisions_about(protocol, definition.name),
    }
    if isinstance(type, Object):
        fact["fields"] = [
            {
                "wire": field.wire,
                "name": protocol.attributes[definition.name][field.wire],
                "type": describe(field.type),
                "required": field.required,
                "default": field.default,
                "doc": field.doc,
            }
            for field in type.fields
        ]
        fact["otherMembers"] = describe(type.extra) if type.extra is not None else None
    return fact
