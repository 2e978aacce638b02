"""Make every name that generated code uses."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterable

from pydantic import BaseModel

from mcp_bindgen.spec import BadInput, Reading

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|[0-9]+")
_DEFINITION = re.compile(r"[A-Z][A-Za-z0-9]*")
_ANNOTATIONS = frozenset({"list", "dict", "str", "int", "float", "bool"})
_MODULES = frozenset({"core", "methods", "types"})
_ATTRIBUTES = frozenset({*dir(BaseModel), *dir(type(BaseModel))})
"""The attributes of models and of their classes, which pydantic lets no field hide."""

_FIELDS = _ATTRIBUTES | _ANNOTATIONS | {"self", "typing"}
_ARGUMENTS = frozenset({"self"}) | _MODULES | _ANNOTATIONS
_SIDES = frozenset(
    {
        "adds",
        "dispatcher",
        "extension_settings",
        "extensions",
        "extra_capabilities",
        "info",
        "instructions",
        "limits",
        "options",
        "revision",
    }
)
_CALLERS = frozenset(
    {"call", "check", "link", "max_pages", "metadata", "notify", "pages", "peer_settings", "request", "negotiated"}
)
_CLIENTS = frozenset(
    {
        "answer",
        "attach",
        "attach_bridged",
        "cache",
        "changes",
        "checks",
        "connect",
        "connected",
        "handler",
        "mirror",
        "invalid_items",
        "server_capabilities",
        "server_extension",
        "server_info",
        "settle",
        "subscribed",
        "wire_revision",
        "with_options",
    }
)
_SERVERS = frozenset(
    {
        "agree",
        "allows",
        "announces",
        "around",
        "audience",
        "authorize",
        "begin_subscription",
        "bridged",
        "bridged_engines",
        "broadcast",
        "connections",
        "context",
        "extension_lifespan",
        "has_sessions",
        "lifespan",
        "publish",
        "required_scopes",
        "request_state_signer",
    }
)
_CONTEXTS = frozenset(
    {
        "agreed",
        "answered",
        "ask",
        "ask_by",
        "ask_params",
        "close_stream",
        "debug",
        "error",
        "extension",
        "identity",
        "log",
        "meta",
        "origin",
        "params",
        "peer_capabilities",
        "peer_info",
        "progress",
        "request_id",
        "require_extension",
        "roots",
        "sample",
        "scope",
        "session",
        "threads",
        "warning",
        "wire_revision",
    }
)
INHERITED = _SIDES | _CALLERS | _CLIENTS | _SERVERS | _CONTEXTS
"""The names of the runtime's classes: a stub of that name would hide what it inherits."""

_STUBS = INHERITED | _ANNOTATIONS | _MODULES | {"overload"}
_TABLES = frozenset({"METHODS", "FLAGS"})
_TYPING = frozenset({"Literal", "Optional", "Union"})
_LIBRARY = _TYPING | {"ConfigDict", "Model", "TypeAliasType"}
"""The names that datamodel-code-generator needs itself, so that it gives them to no class."""

IMPORTED = (
    "Boolean",
    "Constant",
    "ExtensionResult",
    "Field",
    "Integer",
    "Json",
    "Model",
    "Nullable",
    "Number",
    "TYPE_CHECKING",
    "TypeAlias",
    "TypeAliasType",
)
"""The names that modules of types import, beside those that datamodel-code-generator writes."""

_CLASSES = _LIBRARY | frozenset(dir(builtins))
"""The names that no class has. A reference to a class below it is a text, which Python reads as the builtin."""

CONTRACT_MODULES = _CLASSES | frozenset({*IMPORTED, "Annotated", "Client"})
"""The names that the modules of a contract need: no model of it has one."""

_UNUSABLE = _TYPING | _ANNOTATIONS | {"typing"}
"""The names that modules of types need for their imports and annotations."""


def words(name: str) -> list[str]:
    """Return the words of a name in any of the protocol's styles: `listChanged`, `tools/list_changed`, `JSONValue`."""
    return _WORD.findall(name)


def snake(name: str) -> str:
    """Return `name` as `snake_case`."""
    return "_".join(word.lower() for word in words(name))


def pascal(name: str) -> str:
    """Return `name` as `PascalCase`; the first letter of each word is raised, the rest is kept."""
    return "".join(word[0].upper() + word[1:] for word in words(name))


def constant(name: str) -> str:
    """Return `name` as `UPPER_CASE`."""
    return snake(name).upper()


def is_definition(name: str) -> bool:
    """Return whether generated code can use the name of a definition as it is: for a class, or an alias."""
    return _DEFINITION.fullmatch(name) is not None and name not in _CLASSES


def is_importable(name: str) -> bool:
    """Return whether a module of types can give something by that name."""
    is_special = name.startswith("__") and name.endswith("__")
    return name.isidentifier() and not keyword.iskeyword(name) and not is_special and name not in _UNUSABLE


def definition(name: str) -> str:
    """Return the name of a class that is as near as possible to the `name` of a definition."""
    found = pascal(name)
    return found if is_definition(found) else f"{found}Type" if found[:1].isalpha() else f"Type{found}"


def numbered(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return `name` with the first number from 2 on that makes it free."""
    number = 2
    while is_taken(f"{name}{number}"):
        number += 1
    return f"{name}{number}"


def field(wire: str) -> str:
    """Return the Python name of a member: the part after a vendor prefix, in snake case, never a name that
    pydantic or the annotations beside it need."""
    name = snake(wire.rpartition("/")[2]) or "field"
    if name[0].isdigit():
        name = f"field_{name}"
    return _free(name, _FIELDS)


def _free(name: str, reserved: frozenset[str]) -> str:
    """Return `name`, or with a trailing underscore where it would hide something or is a word of Python's."""
    return f"{name}_" if keyword.iskeyword(name) or name in reserved else name


def fields(owner: str, wires: Iterable[str], reading: Reading) -> dict[str, str]:
    """Return wire name -> Python name for all members of one object.

    A member that Python can call as the wire does has that name; constructors take both names.

    Raises:
        BadInput: In a strict reading: two members would have the same name in Python.
    """
    stems = {wire: field(wire) for wire in wires}
    names = {wire: wire for wire, stem in stems.items() if stem == wire}
    for wire, name in stems.items():
        if wire != name in names.values():
            other = next(known for known in names if names[known] == name)
            error = BadInput(
                f"the members {other!r} and {wire!r} of {owner} are both {name!r} in Python",
                pointer=f"/$defs/{owner}",
                fix="rename one of them with a patch",
            )
            name = numbered(f"{name.removesuffix('_')}_", {*stems, *names.values()}.__contains__)
            reading.settle("member-taken", error, f"{wire!r} is {name!r}")
        names[wire] = name
    return names


def argument(name: str, reserved: frozenset[str] = _ARGUMENTS) -> str:
    """Name the argument of a call after its field; it need not avoid what pydantic's classes have.

    Args:
        name: The name of the field.
        reserved: What the body of the call needs.
    """
    return _free(name.removesuffix("_"), reserved)


def hoisted(parent: str, member: str) -> str:
    """Return the name of an inline object below `parent`."""
    return parent + (pascal(member) or "Value")


def request_stub(definition: str) -> str:
    """Return `CallToolRequest` -> `call_tool`."""
    return _free(snake(definition.removesuffix("Request")) or "request", _STUBS)


def notification_stub(definition: str) -> str:
    """Return `ToolListChangedNotification` -> `tool_list_changed`; stubs put `on_` or `notify_` before it."""
    return snake(definition.removesuffix("Notification")) or "notification"


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
