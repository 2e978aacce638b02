"""URI templates, levels 1 to 4, in both directions (RFC 6570)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias
from urllib.parse import quote, unquote

Value: TypeAlias = str | int | float | Sequence[str] | Mapping[str, str] | None
"""What a variable may stand for; `None`, and what is empty and no text, is undefined (RFC 6570, 2.3)."""

Found: TypeAlias = str | list[str] | dict[str, str]
"""What a variable is found to stand for."""

_RESERVED = ":/?#[]@!$&'()*+,;="
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"(?:\w|%[0-9A-Fa-f]{2})(?:[.-]?(?:\w|%[0-9A-Fa-f]{2}))*", re.ASCII)  # servers use hyphens as well
_PREFIX = re.compile(r"[1-9]\d{0,3}", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x20\x7f]")
_LONGEST = 1 << 16  # characters of a URI that is looked at


@dataclass(frozen=True)
class Variable:
    """A variable of a template.

    Attributes:
        name: Its name.
        explode: Whether it stands for several values, each of them on its own (`*`).
        length: How many characters of its value are used, at most (`:3`).
        optional: Whether a URI of the template may well do without it.
        named: Whether its name is in the URI.
    """

    name: str
    explode: bool = False
    length: int | None = None
    optional: bool = False
    named: bool = False


@dataclass(frozen=True)
class Operator:
    """How an expression is written (RFC 6570, appendix A).

    Attributes:
        first: What comes before its first variable.
        separator: What is between two of them.
        named: Whether each has its name before it.
        empty: What follows the name of one that is empty.
        reserved: Whether reserved characters stay as they are.
        span: Matches what an expression with a single value may be, and one with several.
    """

    first: str
    separator: str
    named: bool = False
    empty: str = ""
    reserved: bool = False
    span: tuple[str, str] = ("[^/?#]*", "[^/?#]*")


OPERATORS = {
    "": Operator("", ","),
    "+": Operator("", ",", reserved=True, span=(".*", ".*")),
    "#": Operator("#", ",", reserved=True, span=(".*", ".*")),
    ".": Operator(".", "."),
    "/": Operator("/", "/", span=("[^/?#]*", "[^?#]*")),
    ";": Operator(";", ";", named=True),
    "?": Operator("?", "&", named=True, empty="=", span=("[^#]*", "[^#]*")),
    "&": Operator("&", "&", named=True, empty="=", span=("[^#]*", "[^#]*")),
}


@dataclass(frozen=True)
class Expression:
    """What stands in braces.

    Attributes:
        operator: How it is written.
        variables: Its variables.
    """

    operator: Operator
    variables: list[Variable]

    @cached_property
    def span(self) -> re.Pattern[str]:
        """Matches what may follow `operator.first`."""
        several = len(self.variables) > 1 or self.variables[0].explode
        return re.compile(self.operator.span[several], re.DOTALL)

    def expand(self, values: Mapping[str, Value]) -> str:
        """The text for some values; empty if none of them is defined (RFC 6570, 3.2.1)."""
        pieces = [piece for variable in self.variables for piece in self._pieces(variable, values.get(variable.name))]
        return self.operator.first + self.operator.separator.join(pieces) if pieces else ""

    def _pieces(self, variable: Variable, value: Value) -> Iterator[str]:
        if value is None:
            return
        if isinstance(value, Mapping):
            pairs = [(self._encoded(name), self._encoded(one)) for name, one in value.items()]
            if variable.explode:
                yield from (
                    self._after(name, text) if self.operator.named else f"{name}={text}" for name, text in pairs
                )
                return
            texts = [text for pair in pairs for text in pair]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            texts = [self._encoded(one) for one in value]
            if variable.explode:
                yield from (self._after(variable.name, text) if self.operator.named else text for text in texts)
                return
        else:
            texts = [self._encoded(_text(value)[: variable.length])]
        if texts:
            joined = ",".join(texts)
            yield self._after(variable.name, joined) if self.operator.named else joined

    def _after(self, name: str, text: str) -> str:
        return f"{name}={text}" if text else f"{name}{self.operator.empty}"

    def _encoded(self, text: str) -> str:
        return _lenient(text) if self.operator.reserved else quote(text, safe="-._~")

    def read(self, text: str) -> dict[str, Found] | None:
        """The variables in `text`; `None` if it is not what the expression gives."""
        if not text:
            return {}
        parts = text[len(self.operator.first) :]
        if self.operator.named:
            return self._read_named(parts.split(self.operator.separator))
        if len(self.variables) == 1 and not self.variables[0].explode:
            return {self.variables[0].name: unquote(parts, errors="strict")}
        return self._read_places([unquote(part, errors="strict") for part in parts.split(self.operator.separator)])

    def _read_places(self, values: list[str]) -> dict[str, Found] | None:
        found: dict[str, Found] = {}
        for position, variable in enumerate(self.variables):
            if variable.explode:
                behind = len(self.variables) - position - 1
                count = max(len(values) - behind, 0)
                if count:
                    found[variable.name] = values[:count]
                values = values[count:]
            elif values:
                found[variable.name] = values.pop(0)
        return None if values else found

    def _read_named(self, parts: list[str]) -> dict[str, Found] | None:
        known = {variable.name: variable for variable in self.variables}
        others = [variable.name for variable in self.variables if variable.explode]
        found: dict[str, Found] = {}
        for part in parts:
            name, _, text = part.partition("=")
            value = unquote(text, errors="strict")
            if name in known and known[name].explode:
                several = found.setdefault(name, [])
                if not isinstance(several, list):
                    return None
                several.append(value)
            elif name in known and name not in found:
                found[name] = value
            elif name not in known and others:
                pairs = found.setdefault(others[0], {})
                if not isinstance(pairs, dict):
                    return None
                pairs[unquote(name, errors="strict")] = value
            else:
                return None
        return found


class UriTemplate:
    """A URI template.

    Args:
        text: The template.

    Attributes:
        text: The template.
        parts: Its literal texts, as they are in URIs, and its expressions.

    Raises:
        ValueError: It is not one.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts = tuple(_parts(text))

    def __repr__(self) -> str:
        return f"UriTemplate({self.text!r})"

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables, each of them once, in their order."""
        found: dict[str, Variable] = {}
        for part in self.parts:
            for variable in part.variables if isinstance(part, Expression) else ():
                found.setdefault(variable.name, variable)
        return tuple(found.values())

    @cached_property
    def specificity(self) -> tuple[int, int]:
        """Grows with what a template says of its URIs: first their literal text, then how few variables there are."""
        literal = sum(len(part) for part in self.parts if isinstance(part, str))
        return literal, -sum(len(part.variables) for part in self.parts if isinstance(part, Expression))

    def expand(self, values: Mapping[str, Value]) -> str:
        """The URI for some values; variables without one are left out."""
        return "".join(part if isinstance(part, str) else part.expand(values) for part in self.parts)

    def match(self, uri: str) -> dict[str, Found] | None:
        """The values of the variables in a URI, decoded; `None` if the URI is not one of this template.

        A variable is a text; one with `*` a list, or a dict where names in the URI are not its own. Those that are not
        in the URI are left out. A URI may have its query in any order. What a value contains is up to who wrote the
        URI: `..` and encoded slashes too.

        The work grows with the length of the URI, not faster.
        """
        try:
            return self._match(_lenient(uri)) if len(uri) <= _LONGEST else None
        except UnicodeError:  # no UTF-8 behind the percent signs
            return None

    def _match(self, uri: str) -> dict[str, Found] | None:
        pieces = _split(uri, self.parts)
        found: dict[str, Found] = {}
        for expression, text in pieces or ():
            read = expression.read(text)
            if read is None or any(found.setdefault(name, value) != value for name, value in read.items()):
                return None
        return None if pieces is None else found


def _split(uri: str, parts: Sequence[str | Expression]) -> list[tuple[Expression, str]] | None:
    """Each expression and the text that it has in a URI; `None` if the parts do not lead to its end.

    The way forth notes where each part may begin, the way back chooses: the last expressions are as short as they can
    be, but not empty.
    """
    begins: list[set[int]] = [{0}]
    for part in parts:
        begins.append(_ends(uri, part, begins[-1]))
    end = len(uri)
    if end not in begins.pop():
        return None
    found: list[tuple[Expression, str]] = []
    for part, starts in zip(reversed(parts), reversed(begins), strict=True):
        if isinstance(part, str):
            end -= len(part)
        else:
            begin = _begin(uri, part, starts, end)
            found.append((part, uri[begin:end]))
            end = begin
    return found[::-1]


def _ends(uri: str, part: str | Expression, starts: set[int]) -> set[int]:
    """Where a part may end that begins at one of `starts`."""
    if isinstance(part, str):
        return {start + len(part) for start in starts if uri.startswith(part, start)}
    ends = set(starts)
    first = part.operator.first
    last = -1
    for start in sorted(starts):
        if uri.startswith(first, start) and start + len(first) > last:
            last = _end(uri, part, start)
            ends.update(range(start + len(first), last + 1))
    return ends


def _end(uri: str, part: Expression, start: int) -> int:
    """How far an expression may go that begins at `start`."""
    found = part.span.match(uri, start + len(part.operator.first))
    return found.end() if found else start


def _begin(uri: str, part: Expression, starts: set[int], end: int) -> int:
    """The last of `starts` from which an expression goes to `end` without being empty; else `end`."""
    first = part.operator.first
    for start in sorted((start for start in starts if start < end and uri.startswith(first, start)), reverse=True):
        whole = part.span.fullmatch(uri, start + len(first), end)
        return start if whole else end  # what is wrong behind `start` is wrong behind those before it too
    return end


def _text(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lenient(text: str) -> str:
    """Percent-encodes what no URI may contain, and nothing twice."""
    pieces = _TRIPLET.split(text)
    return "".join(
        piece.upper() if position % 2 else quote(piece, safe=_RESERVED + "-._~")
        for position, piece in enumerate(pieces)
    )


def _parts(text: str) -> Iterator[str | Expression]:
    for position, piece in enumerate(_BRACES.split(text)):
        if position % 2:
            yield _expression(piece, text)
        elif "{" in piece or "}" in piece or _CONTROLS.search(piece):
            raise ValueError(f"{text!r} is not a URI template: {piece!r} has a brace, a space or a control character")
        elif piece:
            yield _lenient(piece)


def _expression(body: str, text: str) -> Expression:
    sign = body[:1] if body[:1] in OPERATORS else ""
    operator = OPERATORS[sign]
    return Expression(operator, [_variable(one, sign, text) for one in body[len(sign) :].split(",")])


def _variable(body: str, sign: str, text: str) -> Variable:
    name, colon, length = body.removesuffix("*").partition(":")
    explode = body.endswith("*")
    if not _NAME.fullmatch(name) or (colon and (explode or not _PREFIX.fullmatch(length))):
        raise ValueError(f"{text!r} is not a URI template: {body!r} is not a variable")
    return Variable(name, explode, int(length) if colon else None, sign not in ("", "+"), OPERATORS[sign].named)
