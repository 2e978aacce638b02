"""Names in TypeScript: of types, members, handlers and calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Kind
from mcp_bindgen.ir.naming import free, pascal

_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
INHERITED = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
"""The members of `Object.prototype`, which every object has."""

_OWN = ("Extensions", "Open", "Promise")
"""Types that are not definitions: of `types.ts`, and of asynchronous functions."""


def types(protocol: Protocol) -> dict[str, str]:
    """Return definition -> name of its type. A capital distinguishes types from keywords and from our own names."""
    return _unique(((name, _type(name)) for name in protocol.definitions), _OWN)


def _type(name: str) -> str:
    found = name if name.isidentifier() else re.sub(r"[^A-Za-z0-9]", "", pascal(name))
    return found if found[:1].isalpha() and not found[:1].islower() else f"T{found}"


def handlers(methods: Iterable[tuple[str, Kind]]) -> list[str]:
    """Return the names of handlers: `callTool` for `CallToolRequest`, `onProgress` for `ProgressNotification`."""
    return _names(methods, "on")


def calls(methods: Iterable[tuple[str, Kind]]) -> list[str]:
    """Return the names of calls: `callTool` for `CallToolRequest`, `notifyProgress` for `ProgressNotification`."""
    return _names(methods, "notify")


def _names(methods: Iterable[tuple[str, Kind]], prefix: str) -> list[str]:
    def name(definition: str, kind: Kind) -> str:
        stem = _type(definition.removesuffix(kind.capitalize()) or kind)
        return f"{prefix}{stem}" if kind == "notification" else stem[0].lower() + stem[1:]

    return list(_unique((f"{kind} {definition}", name(definition, kind)) for definition, kind in methods).values())


def _unique(names: Iterable[tuple[str, str]], reserved: Iterable[str] = ()) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, name in names:
        taken = {*found.values(), *reserved}
        found[key] = free(name, taken)
    return found


def text(value: object) -> str:
    """Return the expression of a JSON value, which may stand in a `<script>` of HTML."""
    return json.dumps(value).replace("</", "<\\/")


def key(name: str) -> str:
    """Return the key of a member in an object literal or type."""
    if name == "__proto__":  # as a plain key of a literal, it sets the prototype
        return '["__proto__"]'
    return name if _IDENTIFIER.fullmatch(name) else text(name)


def member(value: str, name: str) -> str:
    """Return the expression of a member of a value."""
    if name in INHERITED:
        return f"v.own({value}, {text(name)})"
    return f"{value}.{name}" if _IDENTIFIER.fullmatch(name) else f"{value}[{text(name)}]"
