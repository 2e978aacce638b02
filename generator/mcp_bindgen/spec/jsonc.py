"""JSON with comments and trailing commas: read values with their places, and edit a member without other changes."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import BadInput
from .json import is_array, is_object, split, step

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
        value: A scalar, the members of an object, or the items of an array.
        name: Offset of the name of a member, or of an item.
        behind: Offset after a member or an item and its comma.
    """

    start: int
    end: int
    value: Any
    name: int = 0
    behind: int = 0

    @property
    def members(self) -> dict[str, _Node]:
        """The members of an object; empty for other values."""
        return self.value if is_object(self.value) else {}

    def plain(self) -> Any:
        """Return the value without offsets."""
        if is_array(self.value):
            return [item.plain() for item in self.value]
        return {name: node.plain() for name, node in self.members.items()} if is_object(self.value) else self.value


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
        if char in ("{", "["):
            return self.container(start, depth, "}" if char == "{" else "]")
        found = (_STRING if char == '"' else _WORD).match(self.text, start)
        try:
            value = json.loads(found[0] if found else "")
        except ValueError:
            raise self.bad("this is no JSON value") from None
        assert found is not None
        self.offset = found.end()
        return _Node(start, self.offset, value)

    def container(self, start: int, depth: int, end: str) -> _Node:
        """Read an object or an array, as its last character tells."""
        inner: dict[str, _Node] = {}
        self.offset += 1
        while self.blank() != end:
            begins = self.offset
            name = self.name(inner) if end == "}" else str(len(inner))
            inner[name] = node = self.value(depth + 1)
            node.name, node.behind = begins, self.separated(end)
        self.offset += 1
        return _Node(start, self.offset, inner if end == "}" else list(inner.values()))

    def name(self, known: Container[str]) -> str:
        """Read the name of a member, and the colon."""
        found = _STRING.match(self.text, self.offset)
        if found is None:
            raise self.bad('a name in quotes or "}" is missing')
        name: str = json.loads(found[0])
        if name in known:
            raise self.bad(f"the member {name!r} appears twice")
        self.offset = found.end()
        if self.blank() != ":":
            raise self.bad('":" is missing')
        self.offset += 1
        return name

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
            try:
                node = step(node.value, token)
            except KeyError:
                break
            offset = node.name
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
        if not is_object(node.value):
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
        owner, node = node, node.members[name]
    members = list(owner.members.values())
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
    last = max((member.behind for member in node.members.values()), default=node.start + 1)
    head, rest = text[:last], text[last : node.end - 1]
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
