"""URI templates in both directions (RFC 6570): `uritemplate` parses and expands them, matching is ours."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from mcp_bindgen.runtime.protocol.uris import MAX_URI_CHARACTERS, canonical, encoded, folded

from .errors import require

Value: TypeAlias = str | int | float | Sequence[str] | Mapping[str, str] | None
"""The value of a variable in an expansion; `None` and empty lists and objects are undefined (RFC 6570, 2.3)."""

Found: TypeAlias = str | list[str] | dict[str, str]
"""The value of a variable in a URI."""

_NAME = r"(?:\w|%[0-9A-Fa-f]{2})(?:[.-]?(?:\w|%[0-9A-Fa-f]{2}))*"  # servers use hyphens as well
_VARIABLE = rf"{_NAME}(?:\*|:[1-9]\d{{0,3}})?"
_EXPRESSION = rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}"
_TEMPLATE = re.compile(rf"(?:[^{{}}\x00-\x20\x7f]|{_EXPRESSION})*", re.ASCII)
_BRACES = re.compile(r"\{[^{}]*\}")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/?#]*)?")
_TRIPLET = re.compile(r"(%[0-9A-Fa-f]{2})")
_SAFE = ":/?#[]@!$&'()*+,;=-._~"
_OUTSIDE = {"+": "", "#": "", "?": "#", "&": "#"}  # sign -> characters that no expression has


@dataclass(frozen=True)
class Variable:
    """A variable of a template.

    Attributes:
        name: Its name.
        explode: Whether it stands for several values, each written on its own (`*`).
        length: How many characters of its value are used, at most (`:3`).
        optional: Whether URIs commonly leave it out.
        named: Whether its name is in the URI.
    """

    name: str
    explode: bool = False
    length: int | None = None
    optional: bool = False
    named: bool = False


class UriTemplate:
    """A URI template.

    Attributes:
        text: The template.

    Raises:
        ValueError: The text is no template.
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, text: str) -> None:
        require("uritemplate", "a URI template")
        from uritemplate import URITemplate

        unread = _TEMPLATE.sub("", text, count=1)
        if unread:
            raise ValueError(f"{text!r} is not a URI template: it cannot be read from {unread!r} on")
        self.text = text
        self._template = URITemplate(text)
        self._expressions = [_Expression(parsed) for parsed in self._template.variables]
        self._literals = _folded([encoded(literal) for literal in _BRACES.split(text)], self._expressions)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables in their order, each of them once."""
        found: dict[str, Variable] = {}
        for variable in chain.from_iterable(expression.variables for expression in self._expressions):
            found.setdefault(variable.name, variable)
        return tuple(found.values())

    @cached_property
    def specificity(self) -> tuple[int, int]:
        """A key that sorts specific templates behind general ones: more literal text first, then fewer variables."""
        return len("".join(self._literals)), -sum(len(expression.variables) for expression in self._expressions)

    def expand(self, values: Mapping[str, Value]) -> str:
        """Return the URI for some values; variables without one are left out."""
        return _encoded(self._template.expand({name: _plain(value) for name, value in values.items()}))

    def match(self, uri: str) -> dict[str, Found] | None:
        """Return the decoded values of the variables in a URI, or `None` if the URI does not match.

        A variable is a text; one with `*` is a list, or an object where the URI has other names than its own. Variables
        that are not in the URI are left out. A query may have any order.

        The URI is matched in its canonical form: the case of scheme and host makes no difference, though values keep
        theirs, and dot segments are removed. Check values before they are used as paths: those that are percent-encoded
        in part (`..%2F`) arrive decoded.

        Time grows linearly with the length of the URI.
        """
        if len(uri) > MAX_URI_CHARACTERS:
            return None
        try:
            return self._match(canonical(uri, fold_host=False))
        except ValueError:  # of ours, or no UTF-8 behind the percent signs
            return None

    def _match(self, uri: str) -> dict[str, Found]:
        """Return the variables in a URI; raise `ValueError` if the URI does not match.

        The way forward notes where an expression begins for each place that it may end at; the way back reads what is
        between. So time is linear, where backtracking takes forever on hostile URIs. The last expressions are as short
        as they can be, but not empty.
        """
        first, *others = self._literals
        host = _AUTHORITY.match(uri)
        literal_form = uri if host is None else folded(host[0]) + uri[host.end() :]
        end = 0
        for literal in self._literals:  # most URIs are told apart by this, which costs little
            end = literal_form.index(literal, end) + len(literal)
        ends = _behind(literal_form, first, {0})
        steps: list[tuple[_Expression, dict[int, int], str]] = []
        for expression, literal in zip(self._expressions, others, strict=True):
            if not ends:
                break
            begins = expression.begins(uri, ends)
            ends = _behind(literal_form, literal, begins)
            steps.append((expression, begins, literal))
        end = len(uri)
        if end not in ends:
            raise ValueError(uri)
        found: dict[str, Found] = {}
        for expression, begins, literal in reversed(steps):
            end -= len(literal)
            for name, value in expression.read(uri[begins[end] : end]).items():
                if found.setdefault(name, value) != value:
                    raise ValueError(name)
            end = begins[end]
        return found


class _Expression:
    """An expression in braces: an operator and variables."""

    def __init__(self, parsed: Any) -> None:
        sign = parsed.operator.value
        self.prefix: str = parsed.operator.variable_prefix()
        self.separator: str = parsed.operator.expansion_separator()
        self.named = sign in tuple(";?&")
        self.variables = [
            Variable(name, options["explode"], options["prefix"], sign not in ("", "+"), self.named)
            for name, options in parsed.variables
        ]
        self.whole = not self.named and len(self.variables) == 1 and not self.variables[0].explode
        self.outside = _OUTSIDE.get(sign, "?#" if sign == "/" and not self.whole else "/?#")
        self.is_in_host = sign in ("", ".")

    def begins(self, uri: str, starts: Collection[int]) -> dict[int, int]:
        """Return end -> begin for the places that the expression may end at, if it begins at one of `starts`."""
        begins = {start: start for start in starts}
        begin = None
        for end, char in enumerate(uri, 1):
            if end - 1 in starts and (char == self.prefix or (not self.prefix and char not in self.outside)):
                begin = end - 1
            elif char in self.outside:
                begin = None
            if begin is not None:
                begins[end] = begin
        return begins

    def read(self, text: str) -> dict[str, Found]:
        """Return the variables in the text of the expression; raise `ValueError` if they cannot be told."""
        if not text:
            return {}
        body = text[len(self.prefix) :]
        parts = [body] if self.whole else body.split(self.separator)
        return self._read_named(parts) if self.named else self._read_places([_decoded(part) for part in parts])

    def _read_places(self, values: list[str]) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for behind, variable in zip(reversed(range(len(self.variables))), self.variables, strict=True):
            count = max(len(values) - behind, 0) if variable.explode else 1
            mine, values = values[:count], values[count:]
            if mine:
                found[variable.name] = mine if variable.explode else mine[0]
        if values:
            raise ValueError(values)
        return found

    def _read_named(self, parts: list[str]) -> dict[str, Found]:
        given: dict[str, list[str]] = {}
        for part in parts:
            name, _, value = part.partition("=")
            given.setdefault(name, []).append(_decoded(value))
        found: dict[str, Found] = {}
        for variable in self.variables:
            values = given.pop(variable.name, [])
            if variable.explode and values:
                found[variable.name] = values
            elif values:
                [found[variable.name]] = values  # raises `ValueError` if there are several
        if given:
            free = [variable.name for variable in self.variables if variable.explode and variable.name not in found]
            others, *_ = free  # raises `ValueError` if there is none
            found[others] = {_decoded(name): values[-1] for name, values in given.items()}
        return found


def _behind(uri: str, literal: str, starts: Iterable[int]) -> set[int]:
    """Return where a literal ends that begins at one of `starts`."""
    return {start + len(literal) for start in starts if uri.startswith(literal, start)}


def _folded(literals: list[str], expressions: Sequence[_Expression]) -> list[str]:
    """Return the literals of a template with scheme and host in lower case, as far as they are there."""
    start = _AUTHORITY.match(literals[0])
    if start is None:
        return literals
    found, end = list(literals), start.end()
    for index, literal in enumerate(literals):
        if index:
            end = len(re.split("[/?#]", literal, maxsplit=1)[0])
        found[index] = folded(literal[:end]) + literal[end:]
        if (
            "//" not in start[0]
            or end < len(literal)
            or not all(one.is_in_host for one in expressions[index : index + 1])
        ):
            break
    return found


def _plain(value: Value) -> Any:
    """Return a value as `uritemplate` takes it: objects as pairs, because it would sort them; `None` if undefined."""
    if isinstance(value, Mapping):
        return list(value.items()) or None
    if isinstance(value, int | float):
        return json.dumps(value)
    return value if value is None or isinstance(value, str) else list(value) or None


def _encoded(text: str) -> str:
    """Percent-encode what no URI may contain, and nothing twice."""
    pieces = _TRIPLET.split(text)
    return "".join(piece.upper() if index % 2 else quote(piece, safe=_SAFE) for index, piece in enumerate(pieces))


def _decoded(text: str) -> str:
    return unquote(text, errors="strict")
