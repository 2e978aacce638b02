"""Give Python names to a contract's entries and their members; each scope is a bijection."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from unicodedata import normalize

from mcp_bindgen.protocol import naming

_ANNOTATIONS = frozenset({"bool", "bytes", "dict", "float", "int", "list", "object", "str", "tuple"})
_MODULE = frozenset({"abstractmethod", "app", "models", "prompt", "resource", "template", "tool", "types"})
_CONTRACT = frozenset(
    {
        "argument_errors",
        "catalog",
        "complete",
        "hide_errors",
        "info",
        "instructions",
        "lifespan",
        "revisions",
        "tasks",
        "validation_steps",
    }
)
_CLIENT = frozenset({"client", "connect"})
STUBS = _ANNOTATIONS | _MODULE | _CONTRACT | _CLIENT | {"servers"}
"""What generated classes inherit, or need for the annotations beside a method."""


_USUAL = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def odd_tools(contract_tools: Iterable[str]) -> list[str]:
    """Return the names of tools that hosts may refuse (MCP 2025-11-25, "Tools": Tool Names)."""
    return [name for name in contract_tools if _USUAL.fullmatch(name) is None]


class Scope:
    """The names of one class or module; each is given once.

    Args:
        reserved: Names that it must not give.
        mark: What stands before the number that tells two of the same name apart.
    """

    def __init__(self, reserved: Iterable[str] = (), mark: str = "_") -> None:
        self._taken = set(reserved)
        self._mark = mark
        self._next: dict[str, int] = {}

    def claim(self, stem: str) -> str:
        """Return `stem`, or where that is taken, `stem` with the first number from 2 on that is free."""
        name, number = stem, self._next.get(stem, 2)
        while name in self._taken:
            name = f"{stem}{self._mark}{number}"
            number += 1
        self._next[stem] = number
        self._taken.add(name)
        return name


def stubs() -> Scope:
    """Return the scope of a generated class."""
    return Scope()


def definitions() -> Scope:
    """Return the scope of the models of a contract."""
    return Scope(naming.CONTRACT_MODULES, mark="")


def stub(name: str, prefix: str = "") -> str:
    """Return the method for an entry: `get-sum` -> `get_sum`; a word of Python's gets a trailing underscore."""
    text = _snake(name, "tool", prefix)
    return f"{text}_" if keyword.iskeyword(text) or text in STUBS else text


def definition(name: str, suffix: str) -> str:
    """Return the model for an entry: `get-sum`, `Input` -> `GetSumInput`. A capital in it tells it from fields."""
    text = _pascal(name)
    return (text if text.isidentifier() and (suffix or text[0].isupper()) else f"Entry{text}") + suffix


def inner(parent: str, member: str) -> str:
    """Return the model for an object below `parent`: `GetSumInput`, `filter` -> `GetSumInputFilter`."""
    return parent + (_pascal(member) or "Value")


def fields(wires: Iterable[str]) -> dict[str, str]:
    """Return wire name -> Python name for all members of one object; no name is the wire name of another member."""
    stems = {wire: _field(wire) for wire in wires}
    others = Scope(stems)
    return {wire: wire if wire == stem else others.claim(stem) for wire, stem in stems.items()}


def _field(wire: str) -> str:
    text = _snake(wire, "field")
    return naming.field(text) if text.isascii() else text


def _snake(name: str, kind: str, prefix: str = "") -> str:
    text = normalize("NFKC", "_".join([*filter(None, [prefix]), *_words(name)]).lower())
    return text if text.isidentifier() else f"{kind}_{text}".rstrip("_")


def _pascal(name: str) -> str:
    text = normalize("NFKC", "".join(word[0].upper() + word[1:] for word in _words(name)))
    return text if f"A{text}".isidentifier() else ""


def _words(name: str) -> list[str]:
    """Return the words of `name`; letters of any alphabet stay as far as Python takes them into names (NFKC)."""
    plain = normalize("NFKC", name)
    if plain.isascii():
        return naming.words(plain)
    return "".join(char if f"a{char}".isidentifier() and char != "_" else " " for char in plain).split()
