"""Names of Python code: of classes, attributes, arguments, stubs, constants and packages."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from dis import get_instructions
from functools import cache
from inspect import get_annotations, isfunction
from unicodedata import normalize

from pydantic import BaseModel

from mcp_bindgen.ir.model import Kind
from mcp_bindgen.ir.naming import numbered, pascal, unicode_words, words
from mcp_bindgen.spec import DiagnosticContext

from .imports import ABI

_DEFINITION = re.compile(r"[A-Z][A-Za-z0-9]*")
_ANNOTATIONS = frozenset({"list", "dict", "str", "int", "float", "bool"})
_MODULES = frozenset({"core", "methods", "types"})
_ATTRIBUTES = frozenset({*dir(BaseModel), *dir(type(BaseModel))})
"""The attributes of models and of their classes, which pydantic lets no field hide."""

_FIELDS = _ATTRIBUTES | _ANNOTATIONS | {"self", "typing"}
_ARGUMENTS = frozenset({"self"}) | _MODULES | _ANNOTATIONS
_GENERATED = frozenset({"adds", "ask_params", "question_methods"})
"""The names that generated classes have themselves, beside those of methods."""

_TABLES = frozenset({"METHODS", "FLAGS"})
_TYPING = frozenset({"Literal", "Optional", "Union"})
_LIBRARY = _TYPING | {"ConfigDict", "Model", "TypeAliasType"}
"""The names that datamodel-code-generator needs itself, so that it gives them to no class."""

IMPORTED = {
    **dict.fromkeys(("TYPE_CHECKING", "Annotated", "Literal", "TypeAlias"), "typing"),
    **dict.fromkeys(("Field", "MISSING"), "pydantic"),
    **dict.fromkeys(("TypeAliasType", "deprecated"), "typing_extensions"),
    **dict.fromkeys(("Boolean", "Constant", "ExtensionResult", "Integer", "Json"), ABI),
    **dict.fromkeys(("Model", "Nullable", "Number", "complete", "lazy"), ABI),
}
"""Name that modules of types may import -> its module."""

_CLASSES = _LIBRARY | frozenset(dir(builtins))
"""The names that no class has. A reference to a class below it is a text, which Python reads as the builtin."""

CONTRACT_MODULES = _CLASSES | frozenset({*IMPORTED, "Client"})
"""The names that the modules of a contract need: no model of it has one."""

_UNUSABLE = _TYPING | _ANNOTATIONS | {"globals", "typing"}
"""The names that modules of types need for their code."""


@cache
def inherited() -> frozenset[str]:
    """Return the public members of the runtime's classes: a stub with such a name would hide an inherited member."""
    from mcp_bindgen.runtime.abi import Client, Context, Server  # they take time to load

    classes = {base for side in (Client, Context, Server) for base in side.__mro__ if base is not object}
    names = {name for base in classes for name in (*vars(base), *get_annotations(base))}
    methods = (member for base in classes for member in vars(base).values() if isfunction(member))
    steps = (step for method in methods for step in get_instructions(method))
    names |= {step.argval for step in steps if step.opname == "STORE_ATTR"}  # of objects, as `self.scope = scope`
    return frozenset(name for name in names if not name.startswith("_")) | _GENERATED


def snake(name: str) -> str:
    """Return `name` as `snake_case`."""
    return "_".join(word.lower() for word in words(name))


def constant(name: str) -> str:
    """Return `name` as `UPPER_CASE`."""
    return snake(name).upper()


def error_code(name: str) -> str:
    """Return the constant of an error; a name that no constant can have gets a prefix."""
    found = constant(name)
    return found if found.isidentifier() else f"ERROR_{found}".rstrip("_")


def is_definition(name: str) -> bool:
    """Return True if a class or an alias can have the name of a definition; a capital tells it from attributes."""
    is_named = (
        _DEFINITION.fullmatch(name) is not None if name.isascii() else name.isidentifier() and name != name.lower()
    )
    return is_named and name not in _CLASSES


def is_importable(name: str) -> bool:
    """Return whether a module of types can give something by that name."""
    is_special = name.startswith("__") and name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and not is_special and name not in _UNUSABLE


def definition(name: str) -> str:
    """Return the name of a class that is as near as possible to the `name` of a definition."""
    found = pascal(name)
    return found if is_definition(found) else f"{found}Type" if found[:1].isalpha() else f"Type{found}"


def field(wire: str) -> str:
    """Return the attribute of a member in snake case, without the prefix of a vendor (`vendor.example/key`).

    pydantic and the annotations beside it need no such name.
    """
    vendor, _, rest = wire.rpartition("/")
    name = normalize("NFKC", "_".join(unicode_words(rest if "." in vendor else wire)).lower())
    return _free(name if name.isidentifier() else f"field_{name}".rstrip("_"), _FIELDS)


def _free(name: str, reserved: frozenset[str]) -> str:
    """Return `name`, or with a trailing underscore where it would hide something or is a word of Python's."""
    return f"{name}_" if keyword.iskeyword(name) or name in reserved else name


def fields(owner: str, wires: Iterable[str], context: DiagnosticContext) -> dict[str, str]:
    """Return wire name -> Python name for all members of one object.

    A member that Python can call as the wire does has that name; constructors take both names.

    Raises:
        BadInput: In strict mode: two members would have the same name in Python.
    """
    stems = {wire: field(wire) for wire in wires}
    names = {wire: wire for wire, stem in stems.items() if stem == wire}
    for wire, name in stems.items():
        if wire != name in names.values():
            other = next(known for known in names if names[known] == name)
            words = {"owner": owner, "first": other, "second": wire, "name": name}
            name = numbered(f"{name.removesuffix('_')}_", {*stems, *names.values()}.__contains__)
            context.report("member-taken", f"/$defs/{owner}", **words, other=name)
        names[wire] = name
    return {wire: names[wire] for wire in stems}


def argument(name: str, reserved: frozenset[str] = _ARGUMENTS) -> str:
    """Name the argument of a call after its field; names of pydantic's classes are allowed.

    Args:
        name: The name of the field.
        reserved: Names that the body of the call needs.
    """
    return _free(name.removesuffix("_"), reserved)


def stub(definition: str, kind: Kind) -> str:
    """Return `CallToolRequest` -> `call_tool`, and `ToolListChangedNotification` -> `tool_list_changed`.

    Only the stub of a request is a name of its own; the stub of a notification follows `on_` or `notify_`.
    """
    name = snake(definition.removesuffix(kind.capitalize())) or kind
    return (
        _free(name, inherited() | _ANNOTATIONS | _MODULES | {"deprecated", "overload"}) if kind == "request" else name
    )


def handler(stub: str) -> str:
    """Return `create_message` -> `on_create_message`."""
    return f"on_{stub.removesuffix('_')}"


def notifier(stub: str) -> str:
    """Return `initialized` -> `notify_initialized`."""
    return f"notify_{stub.removesuffix('_')}"


def walker(stub: str) -> str:
    """Return `list_tools` -> `iter_tools`."""
    return f"iter_{stub.removesuffix('_').removeprefix('list_')}"


def descriptor(stub: str) -> str:
    """Return `call_tool` -> `CALL_TOOL`, in the module of methods."""
    return _free(constant(stub), _TABLES)


def package(revision: str) -> str:
    """Return `2025-11-25` -> `v2025_11_25`, and `draft` -> `vdraft`."""
    return "v" + re.sub(r"\W+", "_", revision).strip("_")
