"""Every name that generated code uses is made here, and only here."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from pydantic import BaseModel

from mcp_bindgen.spec import BadInput

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|[0-9]+")
_ANNOTATIONS = frozenset({"list", "dict", "str", "int", "float", "bool"})
_RESERVED = frozenset(name for name in dir(BaseModel) if not name.startswith("_")) | _ANNOTATIONS | {"self", "cls"}
_BUILTINS = frozenset(dir(builtins))


def words(name: str) -> list[str]:
    """The words of a name in any of the protocol's styles: `listChanged`, `tools/list_changed`, `JSONValue`."""
    return _WORD.findall(name)


def snake(name: str) -> str:
    """`name` as `snake_case`."""
    return "_".join(word.lower() for word in words(name))


def pascal(name: str) -> str:
    """`name` as `PascalCase`; the first letter of each word is raised, the rest is kept."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


def constant(name: str) -> str:
    """`name` as `UPPER_CASE`."""
    return snake(name).upper()


def field(wire: str) -> str:
    """The Python name of a member: the part after a vendor prefix, in snake case, never a name that
    pydantic or the annotations beside it need."""
    name = snake(wire.rpartition("/")[2]) or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    if keyword.iskeyword(name) or name in _RESERVED or name.startswith("model_"):
        name += "_"
    return name


def fields(owner: str, wires: Iterable[str]) -> dict[str, str]:
    """Wire name -> Python name for all members of one object.

    Raises:
        BadInput: Two members would have the same name in Python.
    """
    names: dict[str, str] = {}
    for wire in wires:
        name = field(wire)
        if name in names.values():
            other = next(known for known in names if names[known] == name)
            raise BadInput(
                f"the members {other!r} and {wire!r} of {owner} are both {name!r} in Python",
                pointer=f"/$defs/{owner}",
                fix="rename one of them with a patch",
            )
        names[wire] = name
    return names


def argument(name: str) -> str:
    """A field's name as an argument of a function: like the field, but it does not hide a builtin."""
    return f"{name}_" if name in _BUILTINS else name


def hoisted(parent: str, member: str) -> str:
    """The name of an inline object below `parent`."""
    return parent + (pascal(member) or "Value")


def request_stub(definition: str) -> str:
    """`CallToolRequest` -> `call_tool`."""
    return snake(definition.removesuffix("Request"))


def notification_stub(definition: str) -> str:
    """`ToolListChangedNotification` -> `tool_list_changed`; stubs put `on_` or `notify_` before it."""
    return snake(definition.removesuffix("Notification"))


def package(revision: str) -> str:
    """`2025-11-25` -> `v2025_11_25`."""
    name = re.sub(r"\W+", "_", revision).strip("_")
    return f"v{name}" if name[:1].isdigit() else name
