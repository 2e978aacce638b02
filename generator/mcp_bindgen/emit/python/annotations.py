"""Write type expressions of the protocol model as Python annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Tuple, Type, Union

from .imports import abi, use

JSON = abi("Json")
PLAIN = {"any": JSON, "string": "str", "integer": "int", "number": "int | float", "boolean": "bool", "null": "None"}
"""Any JSON and its scalars in signatures, where values are only passed on."""

CHECKED = {**PLAIN, "any": "Json", "integer": "Integer", "number": "Number", "boolean": "Boolean"}
"""JSON's scalars in models, where values are validated: the value types of the runtime."""


def annotation(type: Type, scalars: Mapping[str, str] = PLAIN, prefix: str = "types.") -> str:
    """Return `type` as an annotation.

    Args:
        type: The type expression.
        scalars: JSON type -> Python type, `any` among them.
        prefix: Text before the names of definitions.
    """
    return spelled(type, prefix.__add__, scalars)


def spelled(type: Type, name: Callable[[str], str], scalars: Mapping[str, str] = PLAIN) -> str:
    """Return `type` as an annotation in which `name` makes expressions of the names of definitions."""
    match type:
        case AnyValue():
            return scalars["any"]
        case Scalar(kind):
            return scalars[kind]
        case Const(values):
            return f"{use('typing', 'Literal')}[{', '.join(map(repr, values))}]"
        case Tuple(prefix=prefix, least=least, rest=None):
            texts = [spelled(item, name, scalars) for item in prefix]
            tuples = (f"tuple[{', '.join(texts[:length]) or '()'}]" for length in range(least, len(texts) + 1))
            return " | ".join(tuples)
        case Array(items):
            return f"list[{spelled(items, name, scalars)}]"
        case Map(values):
            return f"dict[str, {spelled(values, name, scalars)}]"
        case Ref(definition):
            return name(definition)
        case Union(members):
            return " | ".join(dict.fromkeys(spelled(member, name, scalars) for member in members))
        case Object():
            raise TypeError("an object has a name; refer to it")


def optional(text: str) -> str:
    """Return the annotation `text`, or `None`."""
    return text if text in (JSON, "None") or text.endswith("| None") else f"{text} | None"
