"""`mcp-bindgen show`, `methods` and `model`: print facts of one revision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from mcp_bindgen.conversion import document
from mcp_bindgen.conversion.document import Model
from mcp_bindgen.conversion.source import model_of, protocol_of
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Definition, Method, Object, references
from mcp_bindgen.ir.text import describe
from mcp_bindgen.spec.errors import BadInput, suggestion

from . import options
from .options import Json, JsonSchema
from .output import Columns, diagnostics_about, print_facts, print_json, say_diagnostics
from .terminal import say, write

_revision = typer.Argument(help=options.REVISION_HELP, autocompletion=options.complete_revisions)
RevisionName = Annotated[str, _revision]
OptionalRevisionName = Annotated[str | None, _revision]


@dataclass(frozen=True)
class RevisionOptions(options.SchemaFolder):
    """A revision with extensions, and the folder of its schema."""

    extension: options.Extension = None

    def protocol(self, revision: str) -> PythonProtocol:
        """Return the Python view of a revision, after a warning for each diagnostic."""
        found = lower(protocol_of(revision, self.store, extensions=tuple(self.extension or ())))
        say_diagnostics(found)
        return found

    def model(self, revision: str) -> Model:
        """Return the model of a revision, after a warning for each diagnostic."""
        found = model_of(revision, self.store, tuple(self.extension or ()))
        say_diagnostics(found.protocol)
        return found


def show(
    revision: RevisionName,
    name: Annotated[str, typer.Argument(help="A definition such as Tool, or a method such as tools/call.")],
    as_json: Json = False,
    *,
    reading: RevisionOptions,
) -> None:
    """Print one definition: its meaning, its fields and its uses.

    Examples:

    `mcp-bindgen show 2025-11-25 Tool`

    `mcp-bindgen show 2026-07-28 tools/call --json`

    `mcp-bindgen show tasks CreateTaskResult`

    `mcp-bindgen show git:../specification@main:schema/draft/schema.json Tool`
    """
    protocol = reading.protocol(revision)
    fact = _definition(protocol, _find(protocol, name))
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
            fix=suggestion(name, names, f"see: mcp-bindgen methods {protocol.revision}", most=3),
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
        for field in (one for one in fact["fields"] if one["deprecated"]):
            say(f"{field['wire']}: deprecated {field['deprecated']}.")
    if fact["usedBy"]:
        say(f"Used by: {', '.join(fact['usedBy'])}")


def _definition(protocol: PythonProtocol, definition: Definition) -> dict[str, Any]:
    type = definition.type
    fact: dict[str, Any] = {
        "name": definition.name,
        "revision": protocol.revision,
        "origin": definition.origin or None,
        "type": describe(type),
        "doc": definition.doc,
        "deprecated": definition.deprecated or None,
        "inline": definition.inline,
        "usedBy": [name for name, one in protocol.definitions.items() if definition.name in references(one.type)],
        "diagnostics": diagnostics_about(protocol, definition.name),
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
                "deprecated": field.deprecated or None,
            }
            for field in type.fields
        ]
        fact["otherMembers"] = describe(type.extra) if type.extra is not None else None
    return fact


def methods(revision: RevisionName, as_json: Json = False, *, reading: RevisionOptions) -> None:
    """Print the methods of a revision or an extension: sender, params, result and required capability.

    Examples:

    `mcp-bindgen methods 2025-11-25`

    `mcp-bindgen methods 2026-07-28 --json`

    `mcp-bindgen methods tasks@draft`

    `mcp-bindgen methods 2026-07-28 --extension tasks` prints the methods of core and of the extension.

    `mcp-bindgen methods git:../specification@main:schema/draft/schema.json`
    """
    protocol = reading.protocol(revision)
    alone = [one.id for one in protocol.extensions[:1] if reading.store.is_extension(revision)]
    facts = [_method(protocol, method) for method in protocol.methods if not alone or method.origin in alone]
    if as_json:
        print_json(facts)
        return
    origins = {one.id: f"{one.name}@{one.version}" for one in protocol.extensions}
    columns: Columns = {
        "METHOD": "name",
        "KIND": "kind",
        "SENDER": "sender",
        "CARRIER": "carrier",
        "PARAMS": "params",
        "RESULT": lambda fact: " | ".join([*filter(None, [fact["result"]]), *fact["alternatives"]]) or "-",
        "NEEDS": lambda fact: ", ".join(dict.fromkeys(fact["capabilities"].values())) or "-",
        "FROM": lambda fact: origins.get(fact["origin"], "core"),
    }
    print_facts(facts, columns if protocol.extensions else {one: columns[one] for one in columns if one != "FROM"})


def _method(protocol: PythonProtocol, method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "definition": method.definition,
        "kind": method.kind,
        "sender": method.sender,
        "carrier": method.carrier,
        "params": describe(method.params) if method.params is not None else None,
        "paramsRequired": method.params_required,
        "result": describe(method.result) if method.result is not None else None,
        "alternatives": [*map(describe, method.alternatives), *protocol.added_answers(method.name)],
        "origin": method.origin or None,
        "capabilities": dict(method.capabilities),
        "stub": protocol.stub(method),
        "doc": method.doc,
        "deprecated": method.deprecated or None,
        "diagnostics": diagnostics_about(protocol, method.definition),
    }


def model(revision: OptionalRevisionName = None, schema: JsonSchema = False, *, reading: RevisionOptions) -> None:
    """Print the model of a revision as JSON: definitions, methods, errors, facts, descriptions and conversions.

    `diff` and `generate --schema` accept the file. docs/reference/model.md describes the format.

    Examples:

    `mcp-bindgen model 2026-07-28 > model.json`

    `mcp-bindgen model 2026-07-28 --extension tasks`

    `mcp-bindgen model --json-schema`
    """
    if schema == (revision is not None):
        raise BadInput("give either a revision or --json-schema", fix="as in: mcp-bindgen model 2026-07-28")
    if revision is None:
        print_json(document.json_schema())
        return
    write(document.write(reading.model(revision)))
