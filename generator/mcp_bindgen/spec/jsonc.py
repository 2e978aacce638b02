"""JSON with comments and trailing commas: read values with their places, and edit a member without other changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import BadInput
from .pointer import split

_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,\]}/]+")
_MAX_DEPTH = 200


@dataclass
class _Node:
    """A value and its offsets in the text.

    Attributes:
        start: Offset of the first character.
        end: Offset after the last character.
        value: Value of a scalar; `None` for an object or array.
        members: Members of an object.
        items: Items of an array.
        last: Offset after the last member of an object and its comma.
        name: Offset of the name, for a member.
        behind: Offset after a member and its comma.
    """

    start: int
    end: int
    value: Any = None
    members: dict[str, _Node] | None = None
    items: list[_Node] | None = None
    last: int = 0
    name: int = 0
    behind: int = 0

    def plain(self) -> Any:
        """Return the value without offsets."""
        if self.members is not None:
            return {name: member.plain() for name, member in self.members.items()}
        return self.value if self.items is None else [item.plain() for item in self.items]


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0

    def document(self) -> _Node:
        node = self.value(0)
        self.blank()
        if self.offset < len(self.text):
            raise self.bad("there is more than one value")
        return node

    def bad(self, reason: str) -> BadInput:
        return BadInput(f"line {_line(self.text, self.offset)}: {reason}", fix="correct it there")

    def blank(self) -> str:
        """Skip blanks and comments, and return the next character."""
        found = _BLANK.match(self.text, self.offset)
        self.offset = found.end() if found else self.offset
        return self.text[self.offset : self.offset + 1]

    def value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise self.bad("the value is nested too deeply")
        char, start = self.blank(), self.offset
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
        self.offset = found.end()
        return _Node(start, self.offset, value)

    def object(self, start: int, depth: int) -> _Node:
        members: dict[str, _Node] = {}
        self.offset += 1
        last = self.offset
        while self.blank() != "}":
            found = _STRING.match(self.text, self.offset)
            if found is None:
                raise self.bad('a name in quotes or "}" is missing')
            name, begins = json.loads(found[0]), self.offset
            if name in members:
                raise self.bad(f"the member {name!r} appears twice")
            self.offset = found.end()
            if self.blank() != ":":
                raise self.bad('":" is missing')
            self.offset += 1
            members[name] = member = self.value(depth + 1)
            member.name, member.behind = begins, self.separated("}")
            last = member.behind
        self.offset += 1
        return _Node(start, self.offset, members=members, last=last)

    def array(self, start: int, depth: int) -> _Node:
        items: list[_Node] = []
        self.offset += 1
        while self.blank() != "]":
            items.append(self.value(depth + 1))
            self.separated("]")
        self.offset += 1
        return _Node(start, self.offset, items=items)

    def separated(self, end: str) -> int:
        """Skip a comma, or stop before the end; return the offset after the value or its comma."""
        behind = self.offset
        char = self.blank()
        if char == ",":
            self.offset += 1
            return self.offset
        if char != end:
            raise self.bad(f'"," or "{end}" is missing')
        return behind


class Located:
    """JSON document that knows the lines of its values.

    Args:
        text: JSON, also with comments.

    Raises:
        BadInput: The text is not JSON; the message names the line.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = _Reader(text).document()

    @property
    def value(self) -> Any:
        """The document as a plain value."""
        return self._root.plain()

    def line(self, pointer: str) -> int:
        """Return the line, from 1, of the value at a JSON Pointer, or of the last one on the way that exists."""
        node, offset = self._root, self._root.start
        for token in split(pointer):
            inner: Mapping[str, _Node] = node.members or {
                str(index): item for index, item in enumerate(node.items or ())
            }
            if token not in inner:
                break
            node = inner[token]
            offset = node.name or node.start
        return _line(self._text, offset)


def loads(text: str) -> Any:
    """Return the value of JSON with comments.

    Raises:
        BadInput: The text is not JSON; the message names the line.
    """
    return Located(text).value


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a text with a member set; missing objects on the path are added.

    Args:
        text: JSON with comments; blank for a new file.
        path: The names that lead to the member, from the outermost object.
        value: Its new value.

    Raises:
        BadInput: The text is not JSON, or a value on the path is not an object.
    """
    if not text.strip():
        text = "{}\n"
    node = _Reader(text).document()
    unit = _unit(text)
    for depth, name in enumerate(path):
        if node.members is None:
            raise BadInput(f"{'.'.join(path[:depth]) or 'the document'} is not an object", fix="correct it there")
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
    """Return a text without a member, its lines and its comma; comments outside of it remain.

    Args:
        text: JSON with comments.
        path: The names that lead to the member, from the outermost object.

    Raises:
        BadInput: The text is not JSON.
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
    if (
        before is not None and node.behind == node.end and before.behind > before.end
    ):  # its comma would become a trailing one
        return text[: before.behind - 1] + text[before.behind : start] + text[end:]
    return text[:start] + text[end:]


def _appended(text: str, node: _Node, member: str, unit: str, depth: int) -> str:
    """Return a text with one more member at the end of an object, after the comments on the last member."""
    head, rest = text[: node.last], text[node.last : node.end - 1]
    comma = "" if not node.members or head.endswith(",") else ","
    line, newline, below = rest.partition("\n")
    kept = line.rstrip() if newline else rest.rstrip()  # a comment after the last member stays with it
    after = below.rstrip() if newline else ""
    tail = f"\n{after}" if after else ""
    return f"{head}{comma}{kept}{tail}\n{unit * (depth + 1)}{member}\n{unit * depth}{text[node.end - 1 :]}"


def _unit(text: str) -> str:
    """Return the indentation of one level in a text."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
