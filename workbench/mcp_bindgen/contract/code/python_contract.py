"""Lower a contract to Python: names of methods for its entries, and class names for its definitions."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from unicodedata import normalize

from mcp_bindgen import app
from mcp_bindgen.emit.python import naming
from mcp_bindgen.ir.model import renamed
from mcp_bindgen.ir.naming import numbered, unicode_words

from ..model import Contract, Entry
from ..names import entry_names

_ANNOTATIONS = frozenset({"bool", "bytes", "dict", "float", "int", "list", "object", "str", "tuple"})
_MODULE = frozenset({"abstractmethod", "app", "models", "prompt", "resource", "template", "tool", "types"})
_INHERITED = frozenset(name for base in (app.Contract, app.ContractClient) for name in dir(base))
_DECLARED = frozenset({"catalog", "client", "revisions"})
"""Attributes that the base classes annotate, and set later."""

RESERVED = _ANNOTATIONS | _MODULE | _INHERITED | _DECLARED
"""Names that generated classes inherit, or use in annotations."""


@dataclass(frozen=True)
class PythonContract(Contract):
    """A contract whose definitions have class names, with a table of method names.

    Attributes:
        stubs: Pointer of an entry -> name of its method.
    """

    stubs: Mapping[str, str] = field(default_factory=dict[str, str])

    def stub(self, entry: Entry) -> str:
        """Return the name of the method of an entry."""
        return self.stubs[entry.pointer]


def lower_contract(contract: Contract) -> PythonContract:
    """Return the Python view of a contract; names are unique, numbered in the order of the contract."""
    if isinstance(contract, PythonContract):
        return contract
    definitions = contract.types.definitions
    taken = {*definitions, *naming.CONTRACT_MODULES}
    classes = {name: numbered(name, taken.__contains__) for name in definitions if name in naming.CONTRACT_MODULES}

    named = (
        replace(one, name=classes.get(name, name), type=renamed(one.type, classes)) for name, one in definitions.items()
    )
    values: dict[str, Any] = {attribute.name: getattr(contract, attribute.name) for attribute in fields(Contract)}
    values["types"] = replace(contract.types, definitions={one.name: one for one in named})
    values["tools"] = tuple(replace(tool, output=classes.get(tool.output, tool.output)) for tool in contract.tools)
    return PythonContract(**values, stubs=entry_names(contract, stub, "_"))


def stub(name: str, prefix: str = "") -> str:
    """Return the method name of an entry: `get-sum` -> `get_sum`. Keywords get a trailing underscore."""
    text = normalize("NFKC", "_".join([*filter(None, [prefix]), *unicode_words(name)]).lower())
    text = text if text.isidentifier() else f"tool_{text}".rstrip("_")
    return f"{text}_" if keyword.iskeyword(text) or text in RESERVED else text
