"""Scopes of operations, and the forms of a URI that an access rule or a handler may mean.

`rule_keys` returns the rules that a URI may fall under. It errs on the safe side, because a handler may read more into
a URI than RFC 3986 does: it may decode twice, take an encoded slash for a slash, or ignore authorities.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from urllib.parse import unquote

from mcp_bindgen.http.server.access import Scopes
from mcp_bindgen.runtime.protocol.access import Operation
from mcp_bindgen.runtime.protocol.uris import canonical, encoded

from ..challenges import SCOPE

EVERYTHING = "*"
"""Key for every request in a table of scopes."""

_SLASHES = re.compile(r"[^:/{}]*:(/*)")
_IGNORED = dict.fromkeys((*range(0x21), 0x7F))  # readers of URIs strip these
_DEFAULT_PORTS = {"http": ":80", "ws": ":80", "https": ":443", "wss": ":443"}
_MAX_DECODINGS = 4  # a handler that decodes more often is not considered
_OFFLINE = "offline_access"
_NOTHING: frozenset[str] = frozenset()


class Policy:
    """Scopes that operations require.

    The scopes of a name are required beside those of its method, and both beside the scopes of every request. Names of
    tools and prompts are compared exactly, URIs by their `rule_keys`: all rules that may match a URI apply.

    Args:
        scopes: Method, or method and name, or `*` -> required scopes.
        implies: Scope -> narrower scopes that it implies.

    Attributes:
        general: All scopes of whole methods; all scopes if there are none.

    Raises:
        ValueError: A text is no scope, or not a scope of a resource.
    """

    def __init__(self, scopes: Scopes, implies: Mapping[str, Collection[str]]) -> None:
        stated = {key: frozenset(check_scopes(named)) for key, named in scopes.items()}
        whole = {key: named for key, named in stated.items() if isinstance(key, str)}
        self.general: list[str] = sorted(_NOTHING.union(*(whole or stated).values()))
        self._implied = {scope: frozenset(check_scopes(narrower)) for scope, narrower in implies.items()}
        self._everything = whole.get(EVERYTHING, _NOTHING)
        self._of_method = {key: named | self._everything for key, named in whole.items()}
        self._of_name: dict[Operation, frozenset[str]] = {}
        for key, named in stated.items():
            if not isinstance(key, str):
                rule = key[0], rule_keys(key[1])[0]
                self._of_name[rule] = self._of_name.get(rule, _NOTHING) | named

    def needed(self, operation: Operation) -> frozenset[str]:
        """Return the scopes that an operation requires."""
        method, name = operation
        found = self._of_method.get(method, self._everything)
        for key in () if name is None else rule_keys(name):
            found |= self._of_name.get((method, key), _NOTHING)
        return found

    def granted(self, scopes: frozenset[str]) -> frozenset[str]:
        """Return scopes with all scopes that they imply, directly or not."""
        found, pending = set(scopes), list(scopes & self._implied.keys())
        while pending:
            new = self._implied.get(pending.pop(), _NOTHING) - found
            found |= new
            pending += new
        return frozenset(found)


def is_scope(text: str) -> bool:
    """Return True if a resource may request a text as a scope (RFC 6749, section 3.3)."""
    return SCOPE.fullmatch(text) is not None and text != _OFFLINE


def check_scopes(scopes: Collection[str]) -> Collection[str]:
    """Return scopes if they are valid.

    Raises:
        ValueError: The argument is a text, or has a text that is no scope of a resource.
    """
    if isinstance(scopes, str):
        raise ValueError(f"scopes are a list: write [{scopes!r}]")
    for scope in scopes:
        if scope == _OFFLINE:
            reason = "is between a client and its authorization server; a resource does not need it"
            raise ValueError(f"{_OFFLINE} {reason}")
        if not is_scope(scope):
            raise ValueError(f"{scope!r} is not a scope")
    return scopes


# --- URIs -----------------------------------------------------------------------------------------------------


def readings(uri: str, template: str) -> list[str]:
    """Return the forms of a URI that a handler may read, in which a URI template may match it.

    These are the canonical form, that of each decoding, and the keys of access rules with as many slashes behind the
    scheme, and at the end, as the template has.
    """
    slashes = _SLASHES.match(template)
    return _readings(uri, slashes[1] if slashes else "", "/" if template.endswith("/") else "")


@lru_cache(maxsize=4)
def _readings(uri: str, slashes: str, end: str) -> list[str]:
    head, tails = _split(uri)
    found = dict.fromkeys(canonical(form) for form in _decodings(uri))
    for form in _decodings(head):
        for scheme, _, rest in (key.partition(":") for key in _squeezed(form)):
            found |= dict.fromkeys(encoded(f"{scheme}:{slashes}{rest}{end}{tail}") for tail in tails)
    return list(found)


@lru_cache(maxsize=4)
def rule_keys(uri: str) -> list[str]:
    """Return the keys of the access rules that may hold for a URI; the first one is that of a rule about just this URI.

    Rules about a URI hold for it with any query, fragment and user. These make no difference: the number of slashes,
    slashes at the end, backslashes, dots at the end of the host, the default port, control characters and spaces, and
    how often something is percent-encoded. A name without a colon is no URI; its only key is the name.
    """
    if ":" not in uri and "%" not in uri:
        return [uri]
    head, tails = _split(uri)
    return list(dict.fromkeys(f"{key}{tail}" for key in _squeezed(_decodings(head)[-1]) for tail in tails))


def _split(uri: str) -> tuple[str, list[str]]:
    """Return a URI without its query and fragment, and what rules may have behind that, decoded."""
    before, number, fragment = uri.partition("#")
    head, mark, query = before.partition("?")
    tails = (_decodings(tail)[-1] for tail in (mark + query + number + fragment, mark + query, ""))
    return head, list(dict.fromkeys(tail.rstrip("?#") and tail for tail in tails))


def _squeezed(head: str) -> list[str]:
    """Return a URI without its query and fragment as its scheme and the segments that are left of it.

    The second one, where there is a user, is without that.
    """
    scheme, colon, rest = head.translate(_IGNORED).replace("\\", "/").partition(":")
    scheme, hosts = scheme.lower(), [""]
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        host = authority.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ":")).rstrip(".:")
        hosts = [f"{one}{slash}" for one in dict.fromkeys((host, host.rpartition("@")[2]))]
    return [f"{scheme}{colon}{'/'.join(_segments(host + rest))}" for host in hosts]


def _segments(path: str) -> list[str]:
    """Return the segments of a path that are left without empty and dot segments."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return segments


def _decodings(text: str) -> list[str]:
    """Return a text, and it with all percent-encodings decoded, and those that this brings up, and so on."""
    found = [text]
    while len(found) <= _MAX_DECODINGS and "%" in found[-1] and (text := unquote(found[-1])) != found[-1]:
        found.append(text)
    return found
