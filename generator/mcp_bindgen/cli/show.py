"""`mcp-bindgen show`: print one definition of a revision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.protocol.model import Definition, Object, references
from mcp_bindgen.protocol.text import describe
from mcp_bindgen.spec import BadInput, Store, named
from mcp_bindgen.spec.errors import suggestion

from .options import SOURCES, Folder, Strict, With
from .output import about, print_json, print_table, say_corrections, say_decisions
from .terminal import say, write


def show(
    revision: Annotated[
        str,
        typer.Argument(help=f"A revision such as 2025-11-25, an extension such as tasks, or a schema file: {SOURCES}."),
    ],
    name: Annotated[str, typer.Argument(help="A definition such as Tool, or a method such as tools/call.")],
    extension: With = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Print one definition: what it means, its fields and who uses it.

    Examples:

    `mcp-bindgen show 2025-11-25 Tool`

    `mcp-bindgen show 2026-07-28 tools/call --json`

    `mcp-bindgen show tasks CreateTaskResult`

    `mcp-bindgen show git:../specification@main:schema/draft/schema.json Tool`
    """
    protocol = build(named(revision, Store(folder, strict=strict), extensions=extension or ()))
    say_corrections(protocol)
    say_decisions(protocol)
    definition = _find(protocol, name)
    if as_json:
        print_json(_record(protocol, definition))
    else:
        _print(protocol, definition)


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


def _users(protocol: Protocol, name: str) -> list[str]:
    return [user for user, definition in protocol.definitions.items() if name in references(definition.type)]


def _print(protocol: Protocol, definition: Definition) -> None:
    type = definition.type
    origin = next((f"{one.id} {one.version} on " for one in protocol.extensions if one.id == definition.origin), "")
    say(f"{definition.name} ({origin}MCP {protocol.revision}): {describe(type)}")
    if definition.doc:
        write(f"{definition.doc}\n")
    if definition.deprecated:
        say(f"Deprecated {definition.deprecated}.")
    if isinstance(type, Object):
        say()
        print_table(
            ["FIELD", "PYTHON", "TYPE", "REQUIRED", "MEANING"],
            [
                [field.wire, field.name, describe(field.type), "yes" if field.required else "no", field.doc]
                for field in type.fields
            ],
        )
        say()
        say(f"Other members: {describe(type.extra) if type.extra is not None else 'none'}")
    users = _users(protocol, definition.name)
    if users:
        say(f"Used by: {', '.join(users)}")


def _record(protocol: Protocol, definition: Definition) -> dict[str, Any]:
    type = definition.type
    record: dict[str, Any] = {
        "name": definition.name,
        "revision": protocol.revision,
        "origin": definition.origin or None,
        "type": describe(type),
        "doc": definition.doc,
        "deprecated": definition.deprecated or None,
        "hoisted": definition.hoisted,
        "usedBy": _users(protocol, definition.name),
        "decisions": about(protocol, definition.name),
    }
    if isinstance(type, Object):
        record["fields"] = [
            {
                "wire": field.wire,
                "name": field.name,
                "type": describe(field.type),
                "required": field.required,
                "default": field.default,
                "doc": field.doc,
            }
            for field in type.fields
        ]
        record["otherMembers"] = describe(type.extra) if type.extra is not None else None
    return record
