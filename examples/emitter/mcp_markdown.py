"""Emitter of Markdown: one page with the methods of a revision or an extension, and a diagram of their senders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mcp_bindgen.emit import Model, Options
from mcp_bindgen.ir.model import Method, Ref, Type, Union
from mcp_bindgen.spec.markdown import code_span


def emit(model: Model, options: Options) -> Mapping[str, str]:
    """Return the page `methods.md`."""
    methods = [method for method in model.protocol.methods if method.origin == options.extension]
    lines = [
        f"<!-- {options.header(model, comment='')}",
        "-->",
        f"# Methods of {options.extension or 'MCP'} in {model.protocol.revision}",
        "",
        "| method | kind | sender | params | results |",
        "| --- | --- | --- | --- | --- |",
        *map(_row, methods),
        "",
        "```mermaid",
        "sequenceDiagram",
        *(line for method in methods for line in _arrows(method)),
        "```",
        "",
    ]
    return {"methods.md": "\n".join(lines)}


def _row(method: Method) -> str:
    results = [type for type in (method.result, *method.alternatives) if type is not None]
    cells = [_code(method.name), method.kind, method.sender, _names(method.params), " or ".join(map(_names, results))]
    return f"| {' | '.join(cells)} |"


def _code(name: str) -> str:
    """Return a name as code in a cell: a schema may have any text as a name."""
    return code_span(name).replace("|", "\\|")


def _names(type: Type | None) -> str:
    match type:
        case Ref(name):
            return _code(name)
        case Union(members):
            return " or ".join(map(_names, members))
        case _:
            return ""


def _arrows(method: Method) -> Iterator[str]:
    label = re.sub(r"[^-\w/.$]", "?", method.name)
    for sender in method.senders:
        receiver = "server" if sender == "client" else "client"
        yield f"    {sender}->>{receiver}: {label}"
