"""`mcp-bindgen methods`: print the method table of a revision."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.protocol.model import Method
from mcp_bindgen.protocol.text import describe

from .options import Json
from .output import Columns, decisions_about, print_facts, print_json
from .reading import Reading, RevisionName


def methods(revision: RevisionName, as_json: Json = False, *, reading: Reading) -> None:
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
    facts = [_fact(protocol, method) for method in protocol.methods if not alone or method.origin in alone]
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


def _fact(protocol: PythonProtocol, method: Method) -> dict[str, Any]:
    added = [
        type for one in protocol.extensions for name, types in one.alternatives if name == method.name for type in types
    ]
    return {
        "name": method.name,
        "definition": method.definition,
        "kind": method.kind,
        "sender": method.sender,
        "carrier": method.carrier,
        "params": describe(method.params) if method.params is not None else None,
        "paramsRequired": method.params_required,
        "result": describe(method.result) if method.result is not None else None,
        "alternatives": [*map(describe, method.alternatives), *added],
        "origin": method.origin or None,
        "capabilities": dict(method.capabilities),
        "stub": protocol.stub(method),
        "doc": method.doc,
        "deprecated": method.deprecated or None,
        "decisions": decisions_about(protocol, method.definition),
    }
