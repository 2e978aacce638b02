"""Set or remove a member in JSON with comments and trailing commas, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_bindgen.spec import BadInput

_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,\]}/]+")
_DEEPEST = 200


@dataclass
class _Node:
    """A value and where it stands.

    Attributes:
        start: Where it begins.
        end: Behind its last character.
        value: Scalars; the rest is in `members`.
        members: Name -> value, for an object.
        last: Behind the last member of an object, and behind the comma if one follows.
        name: Where the name of a member begins.
        behind: Behind a member, and behind the comma if one follows.
    """

    start: int
    end: int
    value: Any = None
    members: dict[str, _Node] | None = None
    last: int = 0
    name: int = 0
    behind: int = 0
    items: list[_Node] = field(default_factory=list["_Node"])


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0

    def document(self) -> _Node:
        node = self.value(0)
        self.blank()
        if self.place < len(self.text):
            raise self.bad("there is more than one value")
        return node

    def bad(self, reason: str) -> BadInput:
        line = self.text.count("\n", 0, self.place) + 1
        return BadInput(f"line {line}: {reason}", fix="correct it there")

    def blank(self) -> str:
        found = _BLANK.match(self.text, self.place)
        self.place = found.end() if found else self.place
        return self.text[self.place : self.place + 1]

    def value(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise self.bad("it is nested too deeply")
        char, start = self.blank(), self.place
        if char == "{":
            return self.object(start, depth)
        if char == "[":
            return self.array(start, depth)
        found = (_STRING if char == '"' else _WORD).match(self.text, start)
        try:
            value = json.loads(found[0] if found else "")
        except ValueError:
            raise self.bad("this is no JSON value") from None
        assert found is not None
        self.place = found.end()
        return _Node(start, self.place, value)

    def object(self, start: int, depth: int) -> _Node:
        members: dict[str, _Node] = {}
        self.place += 1
        last = self.place
        while self.blank() != "}":
            found = _STRING.match(self.text, self.place)
            if found is None:
                raise self.bad('a name in quotes or "}" is missing')
            name, begins = json.loads(found[0]), self.place
            if name in members:
                raise self.bad(f"the member {name!r} is there twice")
            self.place = found.end()
            if self.blank() != ":":
                raise self.bad('":" is missing')
            self.place += 1
            members[name] = member = self.value(depth + 1)
            member.name, member.behind = begins, self.separated("}")
            last = member.behind
        self.place += 1
        return _Node(start, self.place, None, members, last)

    def array(self, start: int, depth: int) -> _Node:
        items: list[_Node] = []
        self.place += 1
        while self.blank() != "]":
            items.append(self.value(depth + 1))
            self.separated("]")
        self.place += 1
        return _Node(start, self.place, items=items, value=[])

    def separated(self, end: str) -> int:
        """Go past a comma, or stop before the end; return the place behind the value or its comma."""
        behind = self.place
        char = self.blank()
        if char == ",":
            self.place += 1
            return self.place
        if char != end:
            raise self.bad(f'"," or "{end}" is missing')
        return behind


def _plain(node: _Node) -> Any:
    if node.members is not None:
        return {name: _plain(member) for name, member in node.members.items()}
    return [_plain(item) for item in node.items] if node.value == [] else node.value


def loads(text: str) -> Any:
    """Return the value of JSON with comments.

    Raises:
        BadInput: It is none; the message names the line.
    """
    return _plain(_Reader(text).document())


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text with a member set; objects on the way to it are made where they are not.

    Args:
        text: JSON with comments; blank for a file that is new.
        path: The names that lead to the member, from the outermost object.
        value: Its value.

    Raises:
        BadInput: The text is no JSON, or something on the way is no object.
    """
    if not text.strip():
        text = "{}\n"
    node = _Reader(text).document()
    unit = _unit(text)
    for depth, name in enumerate(path):
        if node.members is None:
            raise BadInput(f"{'.'.join(path[:depth]) or 'the document'} is no object", fix="correct it there")
        inner = node.members.get(name)
        if inner is None or depth == len(path) - 1:
            for further in reversed(path[depth + 1 :]):
                value = {further: value}
            written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + unit * (depth + 1))
            if inner is not None:
                return text[: inner.start] + written + text[inner.end :]
            return _appended(text, node, f"{json.dumps(name, ensure_ascii=False)}: {written}", unit, depth)
        node = inner
    raise ValueError("the path is empty")


def without_member(text: str, path: Sequence[str]) -> str:
    """Return a text without a member, its lines and its comma; comments outside of it stay.

    Args:
        text: JSON with comments.
        path: The names that lead to the member, from the outermost object.

    Raises:
        BadInput: The text is no JSON.
        KeyError: There is no such member.
    """
    owner = node = _Reader(text).document()
    for name in path:
        owner, node = node, (node.members or {})[name]
    members = list((owner.members or {}).values())
    start, end = node.name, node.behind
    if len(members) == 1 and not (text[owner.start + 1 : start] + text[end : owner.end - 1]).strip():
        return text[: owner.start] + "{}" + text[owner.end :]
    line, after = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
    if not (text[line:start] + text[end:after]).strip():
        start, end = line, after
    before = members[members.index(node) - 1] if node is members[-1] and node is not members[0] else None
    if before is not None and node.behind == node.end and before.behind > before.end:  # its comma would be the last
        return text[: before.behind - 1] + text[before.behind : start] + text[end:]
    return text[:start] + text[end:]


def _appended(text: str, node: _Node, member: str, unit: str, depth: int) -> str:
    """Return a text with one more member at the end of an object, behind what is said of the last one."""
    head, rest = text[: node.last], text[node.last : node.end - 1]
    comma = "" if not node.members or head.endswith(",") else ","
    line, newline, below = rest.partition("\n")
    kept = line.rstrip() if newline else rest.rstrip()  # a comment behind the last member stays with it
    after = below.rstrip() if newline else ""
    tail = f"\n{after}" if after else ""
    return f"{head}{comma}{kept}{tail}\n{unit * (depth + 1)}{member}\n{unit * depth}{text[node.end - 1 :]}"


def _unit(text: str) -> str:
    """Return what a text is indented with."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "
