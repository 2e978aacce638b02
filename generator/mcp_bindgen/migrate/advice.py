"""Advice in Python names, for the side of a message that the code is on."""

from __future__ import annotations

import re
from pathlib import Path

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.ir.model import Method, Ref
from mcp_bindgen.spec.toml import read_toml

from .bindings import Bindings, shortcuts

_ADVICE: dict[str, tuple[str, str]] = {
    rule: (one["gives"], one["reads"])
    for one in read_toml(Path(__file__).with_name("advice.toml"))["advice"]
    for rule in one["rules"]
}
"""Rule -> the advice to code that gives a value, and to code that reads one."""

_OBJECTS = {"Client": "client", "Context": "ctx"}

_SAME = "Give a value of the new type.", "Read a value of the new type."


def advice(rule: str, *, gives: bool) -> str:
    """Return the advice to code that gives a value, or reads one, after a change that a rule found."""
    given, read = _ADVICE.get(rule, _SAME)
    return given if gives else read


class Replacements:
    """Translator of hints about messages, from names of the wire to names of Python.

    Args:
        new: The new bindings.
    """

    def __init__(self, new: Bindings) -> None:
        self._new = new
        self._methods = {method.name: method for method in new.protocol.methods}
        self._metadata = _metadata(new.protocol)

    def is_metadata(self, definition: str) -> bool:
        """Tell whether a definition is the metadata of requests, which calls complete."""
        return any(name == definition for name, _ in self._metadata)

    def told(self, hint: str, owner: str) -> str:
        """Return a hint for code that uses a member of `owner`, such as `Client`; other words stay."""
        hint = re.sub(r"`([^`]+)` may take its place\.", lambda found: self._place(found, owner), hint)
        return re.sub(r"Its `([^`]+)` is `([^`]+)`\.", lambda found: self._member(found, owner), hint)

    def _place(self, found: re.Match[str], owner: str) -> str:
        method = self._methods.get(found[1])
        if method is None:
            return found[0]
        stub = self._new.by_key.get(("call", owner, method.name))
        if stub is not None:
            return f"`{member_access(stub.name)}(...)` may take its place."
        if not method.lifecycle:
            return found[0]
        api = shortcuts().get(method.name)
        if owner == "Server":
            return f"The runtime answers `{method.name}`, which may take its place."
        if api is None:
            return f"The runtime sends `{method.name}`, which may take its place, {method.lifecycle}."
        return f"`async with {member_access(api)}({self._argument(method)})` takes its place."

    def _argument(self, method: Method) -> str:
        """Return the argument of an API for a method: the one object that its params have beside metadata."""
        fields = self._new.protocol.fields_of(method.params)
        names = [field.type.name for field in fields if field.wire != "_meta" and isinstance(field.type, Ref)]
        return f"types.{names[0]}(...)" if len(names) == 1 else "..."

    def _member(self, found: re.Match[str], owner: str) -> str:
        """Return where a member of the params of an old message is now, if it is in the metadata of requests."""
        name, wire = found[2].partition('["')[0], found[2].partition('["')[2].removesuffix('"]')
        field = self._metadata.get((name, wire))
        if field is None:
            return found[0]
        if owner == "Client":
            return f'Its `{naming.argument(found[1])}` goes with each call: `meta={{"{wire}": ...}}`.'
        return f"Its `{naming.argument(found[1])}` comes with each request: `params.meta.{field}`."


def _metadata(protocol: PythonProtocol) -> dict[tuple[str, str], str]:
    """Return the definition of a request's metadata and the wire name of a member -> its name in Python."""
    found: dict[tuple[str, str], str] = {}
    for method in protocol.methods:
        meta = protocol.field_of(method.params, "_meta")
        if method.kind == "request" and meta is not None and isinstance(meta.type, Ref):
            fields = protocol.fields_of(meta.type)
            found |= {(meta.type.name, field.wire): protocol.attribute(meta.type, field.wire) for field in fields}
    return found


def member_access(name: str) -> str:
    """Return a member of a class as code calls it: `client.subscribed`."""
    owner, _, member = name.partition(".")
    return f"{_OBJECTS.get(owner, owner)}.{member}"
