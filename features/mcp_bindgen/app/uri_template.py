"""URI templates (RFC 6570): `uritemplate` parses and expands them, this module matches URIs against them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote, unquote

from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.protocol.uris import MAX_URI_CHARACTERS, canonical, encoded, folded

if TYPE_CHECKING:
    from uritemplate.variable import URIVariable

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
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f]|\A(?:[/\\]|[A-Za-z]:)|(?:\A|[/\\])\.\. *(?:[/\\]|\Z)")
_OUTSIDE = {"+": "", "#": "", "?": "#", "&": "#"}  # sign -> characters that no expression has


@dataclass(frozen=True)
class Variable:
    """A variable of a template.

    Attributes:
        name: Its name.
        explode: True if it stands for several values, each written on its own (`*`).
        length: Maximum of characters of its value (`:3`).
        optional: True if URIs commonly leave it out.
        named: True if the URI contains its name.
    """

    name: str
    explode: bool = False
    length: int | None = None
    optional: bool = False
    named: bool = False


class Match(NamedTuple):
    """A URI that matches a template.

    Attributes:
        variables: The decoded values of the variables.
        texts: The text of each expression in the canonical form of the URI.
        values: All decoded texts: of the expressions, and of the variables with their items and members.
    """

    variables: dict[str, Found]
    texts: list[str]
    values: list[str]


class UriTemplate:
    """A URI template.

    Attributes:
        text: The template.
        variables: The variables in their order, each once.
        specificity: Sort key, higher for more specific templates: more literal text first, then fewer variables.

    Raises:
        ValueError: The text is no template.
        ImportError: `mcp-bindgen[app]` is not installed.
    """

    def __init__(self, text: str) -> None:
        require("a URI template", "uritemplate", extra="app")
        from uritemplate import URITemplate

        unread = _TEMPLATE.sub("", text, count=1)
        if unread:
            raise ValueError(f"{text!r} is not a URI template: it cannot be read from {unread!r} on")
        self.text = text
        self._template = URITemplate(text)
        self._expressions = [_Expression(parsed) for parsed in self._template.variables]
        pieces = _BRACES.split(text) if self._expressions else [canonical(text, fold_host=False)]
        self._literals = _folded([encoded(literal) for literal in pieces], self._expressions)
        every = [variable for expression in self._expressions for variable in expression.variables]
        found: dict[str, Variable] = {}
        for variable in every:
            found.setdefault(variable.name, variable)
        self.variables: tuple[Variable, ...] = tuple(found.values())
        self.specificity: tuple[int, int] = (len("".join(self._literals)), -len(every))

    def expand(self, values: Mapping[str, Value]) -> str:
        """Return the URI for some values; variables without a value are left out."""
        text = self._template.expand({name: _plain(value) for name, value in values.items()})
        pieces = _TRIPLET.split(text)  # every second one is percent-encoded already
        return "".join(piece.upper() if index % 2 else quote(piece, safe=_SAFE) for index, piece in enumerate(pieces))

    def match(self, uri: str) -> dict[str, Found] | None:
        """Return the decoded values of the variables in a URI, or `None` if the URI does not match.

        The value of a variable is a text. With `*` it is a list, or an object if the URI has other names than the
        variable's own. Variables that are not in the URI are left out. A query may have any order.

        The URI is matched in its canonical form: the case of scheme and host makes no difference, though values keep
        theirs, and dot segments are removed. Check values with `is_unsafe` before you use them as paths: partly
        percent-encoded values (`..%2F`) arrive decoded.

        Time grows linearly with the length of the URI.
        """
        found = self.find(uri)
        return None if found is None else found.variables

    def find(self, uri: str) -> Match | None:
        """Return the variables in a URI and their texts, or `None` if the URI does not match; see `match`."""
        if len(uri) > MAX_URI_CHARACTERS:
            return None
        try:
            return self._find(canonical(uri, fold_host=False))
        except ValueError:  # of this module, or no UTF-8 behind the percent signs
            return None

    def _find(self, uri: str) -> Match:
        """Return the variables in a URI and their texts; raise `ValueError` if the URI does not match.

        The way forward notes, for each place where an expression may end, the place where it begins. The way back reads
        the text between both. So time is linear, where backtracking takes exponential time on hostile URIs. The last
        expressions are as short as possible, but not empty.
        """
        first, *others = self._literals
        host = _AUTHORITY.match(uri)
        literal_form = uri if host is None else folded(host[0]) + uri[host.end() :]
        end = 0
        for literal in self._literals:  # rules out most URIs at little cost
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
        texts: list[str] = []
        values: list[str] = []
        for expression, begins, literal in reversed(steps):
            end -= len(literal)
            text = uri[begins[end] : end]
            texts.insert(0, text)
            values.append(unquote(text.removeprefix(expression.prefix)))  # `{/path*}`: no item shows a leading slash
            for name, value in expression.read(text).items():
                if found.setdefault(name, value) != value:
                    raise ValueError(name)
                values += [value] if isinstance(value, str) else value
                values += value.values() if isinstance(value, dict) else ()
            end = begins[end]
        return Match(found, texts, values)


class _Expression:
    """An expression in braces: an operator and variables."""

    def __init__(self, parsed: URIVariable) -> None:
        sign = parsed.operator.value
        self.prefix = parsed.operator.variable_prefix()
        self.separator = parsed.operator.expansion_separator()
        self.named = sign in tuple(";?&")
        self.variables = [
            Variable(name, options["explode"], options["prefix"], sign not in ("", "+"), self.named)
            for name, options in parsed.variables
        ]
        self.whole = not self.named and len(self.variables) == 1 and not self.variables[0].explode
        self.outside = _OUTSIDE.get(sign, "?#" if sign == "/" and not self.whole else "/?#")
        self.is_in_host = sign in ("", ".")

    def begins(self, uri: str, starts: Collection[int]) -> dict[int, int]:
        """Return end -> begin for each place where the expression may end, if it begins at one of `starts`."""
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
        """Return the variables in the text of the expression; raise `ValueError` if they are ambiguous."""
        if not text:
            return {}
        body = text[len(self.prefix) :]
        parts = [body] if self.whole else body.split(self.separator)
        return self._read_named(parts) if self.named else self._read_places([_decoded(part) for part in parts])

    def _read_places(self, values: list[str]) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for behind, variable in zip(reversed(range(len(self.variables))), self.variables, strict=True):
            count = max(len(values) - behind, 0) if variable.explode else 1
            matched, values = values[:count], values[count:]
            if matched:
                found[variable.name] = matched if variable.explode else matched[0]
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
                [found[variable.name]] = values  # raises `ValueError` for several
        if given:
            free = [variable.name for variable in self.variables if variable.explode and variable.name not in found]
            others, *_ = free  # raises `ValueError` for none
            found[others] = {_decoded(name): values[-1] for name, values in given.items()}
        return found


def is_unsafe(values: Iterable[str]) -> bool:
    """Return True if a value is an absolute path, or has a `..` segment or a control character.

    The paths of Windows count, and values that are percent-encoded again.
    """
    return any(_UNSAFE.search(text) for value in values for text in (value, unquote(value)))


def filled(template: str, texts: Sequence[str]) -> str:
    """Return a template with texts in place of its expressions; without texts, the URI of a resource, as it is."""
    rest = iter(texts)
    return _BRACES.sub(lambda braces: next(rest, braces[0]), template)


def _behind(uri: str, literal: str, starts: Iterable[int]) -> set[int]:
    """Return the ends of a literal that begins at one of `starts`."""
    return {start + len(literal) for start in starts if uri.startswith(literal, start)}


def _folded(literals: list[str], expressions: Sequence[_Expression]) -> list[str]:
    """Return the literals of a template with scheme and host, as far as they are literal, in lower case."""
    start = _AUTHORITY.match(literals[0])
    if start is None:
        return literals
    found, end = list(literals), start.end()
    for index, literal in enumerate(literals):
        if index:
            end = len(re.split("[/?#]", literal, maxsplit=1)[0])
        found[index] = folded(literal[:end]) + literal[end:]
        is_over = "//" not in start[0] or end < len(literal)
        if is_over or not all(one.is_in_host for one in expressions[index : index + 1]):
            break
    return found


def _plain(value: Value) -> Any:
    """Return a value as `uritemplate` expects it: `None` if undefined, an object as pairs, which it does not sort."""
    if isinstance(value, Mapping):
        return list(value.items()) or None
    if isinstance(value, int | float):
        return json.dumps(value)
    return value if value is None or isinstance(value, str) else list(value) or None


def _decoded(text: str) -> str:
    return unquote(text, errors="strict")
