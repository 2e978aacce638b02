"""Type expressions of the protocol model as Python annotations, as stubs use them."""

from __future__ import annotations

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Ref, Scalar, Type, Union

_SCALARS = {"string": "str", "integer": "int", "number": "int | float", "boolean": "bool", "null": "None"}


def annotation(type: Type) -> str:
    """`type` as an annotation; definitions are taken from the module `types`."""
    match type:
        case Free():
            return "Json"
        case Scalar(kind):
            return _SCALARS[kind]
        case Const(values):
            return f"Literal[{', '.join(map(repr, values))}]"
        case Array(items):
            return f"list[{annotation(items)}]"
        case Map(values):
            return f"dict[str, {annotation(values)}]"
        case Ref(name):
            return f"types.{name}"
        case Union(members):
            return " | ".join(dict.fromkeys(annotation(member) for member in members))
        case Object():
            raise TypeError("an object has a name; refer to it")


def optional(text: str) -> str:
    """The annotation `text`, or `None`."""
    return text if text in ("Json", "None") or text.endswith("| None") else f"{text} | None"
