"""`mcp-bindgen methods`: print the method table of a revision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcp_bindgen.protocol import build
from mcp_bindgen.protocol.model import Method
from mcp_bindgen.protocol.text import describe
from mcp_bindgen.spec import Store, named

from . import complete
from .options import SOURCES, Folder, Strict
from .output import about, print_json, print_table, say_corrections, say_decisions

_WHAT = f"A revision such as 2025-11-25, or a schema file: {SOURCES}."


def methods(
    revision: Annotated[
        str,
        typer.Argument(
            help=f"A revision such as 2025-11-25, or a schema file: {SOURCES}.", autocompletion=complete.revisions
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Print the methods of a revision: who sends them, what they take and what answers them.

    Examples:

    `mcp-bindgen methods 2025-11-25`

    `mcp-bindgen methods 2026-07-28 --json`

    `mcp-bindgen methods git:../specification@main:schema/draft/schema.json`
    """
    protocol = build(named(revision, Store(folder, strict=strict)))
    say_corrections(protocol)
    say_decisions(protocol)
    if as_json:
        print_json([_record(method, about(protocol, method.definition)) for method in protocol.methods])
        return
    print_table(
        ["METHOD", "KIND", "SENDER", "CARRIER", "PARAMS", "RESULT", "NEEDS"],
        [[method.name, method.kind, method.sender, method.carrier, *_types(method)] for method in protocol.methods],
    )


def _types(method: Method) -> list[str]:
    params = describe(method.params) if method.params is not None else "-"
    answers = [describe(type) for type in (method.result, *method.alternatives) if type is not None]
    needs = dict.fromkeys(capability for _, capability in method.capabilities)
    return [params, " | ".join(answers) or "-", ", ".join(needs) or "-"]


def _record(method: Method, decisions: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "name": method.name,
        "definition": method.definition,
        "kind": method.kind,
        "sender": method.sender,
        "carrier": method.carrier,
        "params": describe(method.params) if method.params is not None else None,
        "paramsRequired": method.params_required,
        "result": describe(method.result) if method.result is not None else None,
        "alternatives": [describe(type) for type in method.alternatives],
        "capabilities": dict(method.capabilities),
        "stub": method.stub,
        "doc": method.doc,
        "deprecated": method.deprecated or None,
        "decisions": decisions,
    }
