"""`mcp-bindgen methods`: print the method table of a revision."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.protocol.model import Method
from mcp_bindgen.protocol.text import describe
from mcp_bindgen.spec import Store, is_extension, named

from . import complete
from .options import SOURCES, Folder, Strict, With
from .output import about, print_json, print_table, say_corrections, say_decisions


def methods(
    revision: Annotated[
        str,
        typer.Argument(
            help=f"A revision such as 2025-11-25, an extension such as tasks, or a schema file: {SOURCES}.",
            autocompletion=complete.revisions,
        ),
    ],
    extension: With = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    folder: Folder = None,
    strict: Strict = False,
) -> None:
    """Print the methods of a revision or an extension: who sends them, what they take and what answers them.

    Examples:

    `mcp-bindgen methods 2025-11-25`

    `mcp-bindgen methods 2026-07-28 --json`

    `mcp-bindgen methods tasks@draft`

    `mcp-bindgen methods 2026-07-28 --extension tasks` prints those of both, and where each is from.

    `mcp-bindgen methods git:../specification@main:schema/draft/schema.json`
    """
    store = Store(folder, strict=strict)
    protocol = build(named(revision, store, extensions=extension or ()))
    say_corrections(protocol)
    say_decisions(protocol)
    alone = [one.id for one in protocol.extensions[:1] if is_extension(revision, store)]
    methods = [method for method in protocol.methods if not alone or method.origin in alone]
    if as_json:
        print_json([_record(protocol, method, about(protocol, method.definition)) for method in methods])
        return
    origins = {"": "core", **{one.id: f"{one.module}@{one.version}" for one in protocol.extensions}}
    shown = bool(protocol.extensions)
    print_table(
        ["METHOD", "KIND", "SENDER", "CARRIER", "PARAMS", "RESULT", "NEEDS", *(["FROM"] if shown else [])],
        [
            [
                *(method.name, method.kind, method.sender, method.carrier),
                *_types(protocol, method),
                *([origins[method.origin]] if shown else []),
            ]
            for method in methods
        ],
    )


def _others(protocol: Protocol, method: Method) -> list[tuple[str, str]]:
    """Return what extensions answer a method with, each with the id of the extension."""
    return [
        (type, one.id)
        for one in protocol.extensions
        for name, types in one.alternatives
        if name == method.name
        for type in types
    ]


def _types(protocol: Protocol, method: Method) -> list[str]:
    params = describe(method.params) if method.params is not None else "-"
    answers = [describe(type) for type in (method.result, *method.alternatives) if type is not None]
    answers += [type for type, _ in _others(protocol, method)]
    needs = dict.fromkeys(capability for _, capability in method.capabilities)
    return [params, " | ".join(answers) or "-", ", ".join(needs) or "-"]


def _record(protocol: Protocol, method: Method, decisions: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "name": method.name,
        "definition": method.definition,
        "kind": method.kind,
        "sender": method.sender,
        "carrier": method.carrier,
        "params": describe(method.params) if method.params is not None else None,
        "paramsRequired": method.params_required,
        "result": describe(method.result) if method.result is not None else None,
        "alternatives": [*map(describe, method.alternatives), *(type for type, _ in _others(protocol, method))],
        "origin": method.origin or None,
        "capabilities": dict(method.capabilities),
        "stub": method.stub,
        "doc": method.doc,
        "deprecated": method.deprecated or None,
        "decisions": decisions,
    }
