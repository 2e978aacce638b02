"""Names of the definitions of a contract; names are unique in each scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from mcp_bindgen.ir.naming import unicode_pascal

from .model import Contract

_USUAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def odd_tools(contract_tools: Iterable[str]) -> list[str]:
    """Return the names of tools that hosts may refuse (MCP 2025-11-25, "Tools": Tool Names)."""
    return [name for name in contract_tools if _USUAL.fullmatch(name) is None]


class Scope:
    """Scope of unique names.

    Args:
        mark: Separator before the number of a repeated name.
    """

    def __init__(self, mark: str = "") -> None:
        self._taken: set[str] = set()
        self._mark = mark
        self._next: dict[str, int] = {}

    def claim(self, stem: str) -> str:
        """Return `stem`, with the first free number from 2 on if it is taken."""
        name, number = stem, self._next.get(stem, 2)
        while name in self._taken:
            name = f"{stem}{self._mark}{number}"
            number += 1
        self._next[stem] = number
        self._taken.add(name)
        return name


def entry_names(
    contract: Contract, name: Callable[[str, str], str], mark: str = "", taken: Iterable[str] = ()
) -> dict[str, str]:
    """Return the names that generated code has for entries, by their pointers; numbered in the order of the contract.

    Args:
        contract: The contract.
        name: Returns the name of an entry, given its name and a prefix for entries other than tools.
        mark: Separator before the number of a repeated name.
        taken: Names of other things.
    """
    scope = Scope(mark)
    for one in taken:
        scope.claim(one)
    groups = ("", contract.tools), ("prompt", contract.prompts), ("read", (*contract.resources, *contract.templates))
    return {entry.pointer: scope.claim(name(entry.name, prefix)) for prefix, entries in groups for entry in entries}


def inner(parent: str, member: str) -> str:
    """Return the model name of an object in `parent`: `GetSumInput`, `filter` -> `GetSumInputFilter`."""
    return parent + (unicode_pascal(member) or "Value")
