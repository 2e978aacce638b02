"""Names of definitions that the model adds, and the words of any name of the protocol."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from unicodedata import normalize

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|[0-9]+")


def words(name: str) -> list[str]:
    """Return the words of a name in any style of the protocol: `listChanged`, `tools/list_changed`, `JSONValue`."""
    return _WORD.findall(name)


def unicode_words(name: str) -> list[str]:
    """Return the words of a name in any alphabet, in letters that Unicode allows in identifiers (UAX 31, NFKC)."""
    plain = normalize("NFKC", name)
    if plain.isascii():
        return words(plain)
    return "".join(char if f"a{char}".isidentifier() and char != "_" else " " for char in plain).split()


def pascal(name: str) -> str:
    """Return `name` in PascalCase; only the first letter of each word changes."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


def unicode_pascal(name: str) -> str:
    """Return `name` in PascalCase, in letters of any alphabet; empty if it has none that a name may have."""
    text = normalize("NFKC", "".join(word[0].upper() + word[1:] for word in unicode_words(name)))
    return text if f"A{text}".isidentifier() else ""


def class_name(name: str, suffix: str = "") -> str:
    """Return the name of a class for any name: `get-sum`, `Input` -> `GetSumInput`. Fields have no capitals."""
    text = unicode_pascal(name)
    return (text if text.isidentifier() and (suffix or text[0].isupper()) else f"Entry{text}") + suffix


def inline_name(parent: str, member: str, otherwise: str = "Value") -> str:
    """Return the name of the definition made of an inline type at `member` of `parent`.

    Words that end `parent` and begin `member` are written once; `otherwise` stands for a member without further words.
    """
    first, last = words(parent), words(member)
    shared = max(size for size in range(len(last) + 1) if _lower(first[len(first) - size :]) == _lower(last[:size]))
    return parent + ("".join(map(pascal, last[shared:])) or otherwise)


def _lower(found: list[str]) -> list[str]:
    return [word.lower() for word in found]


def numbered(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return `name` with the lowest number from 2 on that is not taken."""
    number = 2
    while is_taken(f"{name}{number}"):
        number += 1
    return f"{name}{number}"


def free(name: str, taken: Container[str]) -> str:
    """Return `name`, or where it is taken, `name` with a number."""
    return numbered(name, taken.__contains__) if name in taken else name
