"""Show the answers of servers to `mcp-bindgen call` as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import is_array, is_object

from .output import print_table

KINDS = {
    "tools": ("tool", "name"),
    "prompts": ("prompt", "name"),
    "resources": ("resource", "uri"),
    "resourceTemplates": ("template", "uriTemplate"),
}
"""Member of a list result -> the kind of its items, and the member that identifies an item."""


def print_offers(offers: Mapping[str, Any]) -> None:
    """Print lists of a server as a table; `offers` has some of the members of `KINDS`."""
    rows = [
        [KINDS[member][0], item[KINDS[member][1]], _takes(item), _meaning(item)]
        for member in KINDS
        for item in offers.get(member, ())
    ]
    print_table(["KIND", "NAME", "TAKES", "MEANING"], rows)


def _takes(item: Mapping[str, Any]) -> str:
    """Return the arguments of a tool or prompt, optional ones with `?`, or the type of a resource."""
    schema, arguments = item.get("inputSchema"), item.get("arguments")
    if is_object(schema):
        required = schema.get("required", ())
        names = [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    else:
        names = [argument["name"] + ("" if argument.get("required") else "?") for argument in arguments or ()]
    return ", ".join(names) or item.get("mimeType") or "-"


def _meaning(item: Mapping[str, Any]) -> str:
    name = item["name"] if "uri" in item or "uriTemplate" in item else "-"
    return item.get("description") or item.get("title") or name


def readable(result: Mapping[str, Any]) -> str:
    """Return a result as text: text content unchanged, other content as a summary, and the rest as JSON."""
    content, messages, contents = (result.get(member) for member in ("content", "messages", "contents"))
    if is_array(content):
        return "\n".join(_said(content, result.get("structuredContent")))
    if is_array(messages):
        return "\n".join(f"{printable(message['role'])}: {_block(message['content'])}" for message in messages)
    if is_array(contents):
        return "\n".join(_resource(part) for part in contents)
    return _json(result)


def _said(content: Sequence[Any], structured: Any) -> Iterator[str]:
    """Return the content of a tool's result; structured content that is repeated as text is left out."""
    for block in content:
        if structured is None or not _repeats(block, structured):
            yield _block(block)
    if structured is not None:
        yield _json(structured)


def _repeats(block: Mapping[str, Any], structured: Any) -> bool:
    try:
        return bool(json.loads(block.get("text", "")) == structured)
    except (ValueError, RecursionError):
        return False


def _block(block: Any) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "mimeType": mime, "data": str(data)}:
            return printable(f"[{kind} {mime}, {_size(data)} bytes]")
        case {"type": "resource", "resource": resource}:
            return _resource(resource)
        case {"type": "resource_link", "uri": uri}:
            return printable(f"[link {uri}]")
        case _:
            return _json(block)


def _resource(part: Mapping[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    return printable(f"[{part['uri']} {part.get('mimeType', 'of unknown type')}, {_size(part['blob'])} bytes]")


def _size(base64: str) -> int:
    return len(base64.rstrip("=")) * 3 // 4


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
