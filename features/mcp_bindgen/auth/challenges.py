"""Challenges and credentials: the headers `WWW-Authenticate` and `Authorization` (RFC 9110, section 11)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote_plus

SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
"""A scope (RFC 6749, section 3.3)."""

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t\x20-\x7e\x80-\xff])*"'
_PARAMETER = re.compile(rf"({_NAME})[ \t]*=[ \t]*({_NAME}|{_QUOTED})[ \t]*(?=,|$)")
_SCHEME = re.compile(rf"({_NAME})(?: +|[ \t]*(?=,|$))")
_TOKEN68 = re.compile(r"([A-Za-z0-9\-._~+/]+=*)[ \t]*(?=,|$)")
_SEPARATOR = re.compile(r"[ \t,]*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WRITABLE = re.compile(r"[\t\x20-\x7e]*")


@dataclass(frozen=True)
class Challenge:
    """Challenge of a server.

    Attributes:
        scheme: Authentication scheme in lower case, such as `bearer`.
        parameters: Name in lower case -> value, unquoted.
        token: The token68 in place of parameters, if there is one.
    """

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    token: str | None = None


def parse(values: Iterable[str]) -> list[Challenge]:
    """Return the challenges in the values of a header, in their order.

    A syntax error ends its value; challenges before it are returned. A challenge with a duplicate parameter is left
    out, because it is ambiguous.
    """
    return [challenge for value in values for challenge in _challenges(value) if challenge is not None]


def write(scheme: str, parameters: Mapping[str, str]) -> str:
    """Return a challenge as the value of a header.

    Raises:
        ValueError: A name is no token, or a value has characters that are not allowed in a header.
    """
    for name in (scheme, *parameters):
        if re.fullmatch(_NAME, name) is None:
            raise ValueError(f"{name!r} is not a name in a challenge")
    for name, value in parameters.items():
        if _WRITABLE.fullmatch(value) is None:
            raise ValueError(f"the value of {name!r} has characters that cannot stand in a challenge")
    escaped = {name: re.sub(r'([\\"])', r"\\\1", value) for name, value in parameters.items()}
    quoted = [f'{name}="{value}"' for name, value in escaped.items()]
    return f"{scheme} {', '.join(quoted)}" if quoted else scheme


def basic_credentials(client_id: str, secret: str) -> str:
    """Return the header `Authorization` of a client with a secret (RFC 6749, section 2.3.1)."""
    pair = f"{quote_plus(client_id)}:{quote_plus(secret)}".encode("ascii")
    return f"Basic {base64.b64encode(pair).decode()}"


def _challenges(value: str) -> Iterator[Challenge | None]:
    """Yield the challenges of a value, `None` for an ambiguous or incomplete challenge."""
    position = _after(_SEPARATOR, value, 0)
    while (begin := _SCHEME.match(value, position)) is not None:
        position = begin.end()
        token: str | None = None
        parameters: dict[str, str] = {}
        is_clear = True
        if _PARAMETER.match(value, position) is None and (alone := _TOKEN68.match(value, position)) is not None:
            token, position = alone[1], alone.end()
        position = _after(_SEPARATOR, value, position)
        while token is None and (found := _PARAMETER.match(value, position)) is not None:
            name = found[1].lower()
            is_clear = is_clear and name not in parameters
            parameters[name] = _unquoted(found[2])
            position = _after(_SEPARATOR, value, found.end())
        is_whole = position == len(value) or _SCHEME.match(value, position) is not None
        yield Challenge(begin[1].lower(), parameters, token) if is_clear and is_whole else None


def _after(pattern: re.Pattern[str], value: str, position: int) -> int:
    found = pattern.match(value, position)
    return position if found is None else found.end()


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
