"""Scopes of operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcp_bindgen.auth.uri_rules import rule_keys
from mcp_bindgen.runtime.protocol.access import Operation, Scopes

from ..challenges import SCOPE

EVERYTHING = "*"
"""Key for every request in a table of scopes."""

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
        self.general = sorted(_NOTHING.union(*(whole or stated).values()))
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
            raise ValueError(
                f"{_OFFLINE} is between a client and its authorization server; a resource does not need it"
            )
        if not is_scope(scope):
            raise ValueError(f"{scope!r} is not a scope")
    return scopes
